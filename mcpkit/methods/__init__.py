"""The methods: each turns a request into a neutral result."""
