from mcpkit import App, Toolbox

billing = Toolbox()  # in billing.py


@billing.tool(tags=["customers"])
def invoice(order: str) -> str:
    """Send the invoice of an order again."""
    return f"Sent the invoice of {order}."


@billing.tool
def refund(order: str) -> str:
    """Give the money back."""
    return f"Refunded {order}."


app = App("shop")  # in server.py, which imports billing
app.include(billing, prefix="billing_")

public = App("public")
public.include(billing, tags=["customers"])
