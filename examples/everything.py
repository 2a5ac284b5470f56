"""Everything that mcpkit can serve, one function each.

    uvicorn examples.everything:app

The names are those that the official conformance suite looks for, so that this
file is also what `tests/conformance` runs the suite against. One of the tools
brings a JSON Schema of its own, which needs the extra `mcpkit[schema]`.
"""

import base64
from typing import Annotated, Any

from pydantic import BaseModel, Field

from mcpkit import (
    App,
    Audio,
    Context,
    File,
    Header,
    Image,
    Message,
    Result,
    Text,
    ToolError,
)

app = App(
    "everything",
    version="1.0.0",
    title="Everything",
    description="One of each.",
    website_url="https://example.com/everything",
    icons=[{"src": "https://example.com/icon.png", "mimeType": "image/png"}],
    instructions="Every tool is safe to call: nothing outside this server changes.",
)

RED_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0g"
    "AAAABJRU5ErkJggg=="
)
SILENCE = base64.b64decode(
    "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=="
)


# Tools: what a function returns is what the model sees.


@app.tool(title="Simple text", annotations={"readOnlyHint": True})
def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@app.tool
def test_image_content() -> Image:
    """Return an image."""
    return Image(RED_PIXEL, "image/png")


@app.tool
def test_audio_content() -> Audio:
    """Return a recording."""
    return Audio(SILENCE, "audio/wav")


@app.tool
def test_embedded_resource() -> File:
    """Return the contents of a resource."""
    return File("test://embedded-resource", "This is an embedded one.", "text/plain")


@app.tool
def test_multiple_content_types() -> list[Text | Image | File]:
    """Return a text, an image and the contents of a resource."""
    return [
        Text("Multiple content types test:"),
        Image(RED_PIXEL, "image/png"),
        File("test://mixed-content-resource", '{"test": 1}', "application/json"),
    ]


@app.tool
def test_error_handling() -> str:
    """Fail, with words that the model can read."""
    raise ToolError("This tool intentionally returns an error for testing.")


class Weather(BaseModel):
    """The weather of a city: the output schema of a tool."""

    city: str
    degrees: float = Field(description="Degrees Celsius.")
    conditions: list[str]


@app.tool
def test_structured_content(
    city: Annotated[str, Field(description="The name of a city.")],
    degrees: float = 21,  # noqa: PT028  # this is no test of pytest's
) -> Weather:
    """Return structured content."""
    return Weather(city=city, degrees=degrees, conditions=["sun", "wind"])


@app.tool
def test_x_mcp_header(region: Annotated[str, Header("Region")]) -> str:
    """Take an argument that proxies can route by: a header mirrors it."""
    return f"Served in {region}."


CONTACT = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {
        "properties": {"contactMethod": {"const": "phone"}},
        "required": ["contactMethod"],
    },
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@app.tool(input_schema=CONTACT)
def json_schema_2020_12_tool(contact: dict[str, Any]) -> str:
    """Take arguments that a JSON Schema describes, and no signature could."""
    return f"{contact.get('name', 'Someone')} can be reached."


@app.tool
async def test_tool_with_progress() -> str:
    """Work in steps."""
    return "Done in three steps."


@app.tool
async def test_tool_with_logging() -> str:
    """Work in steps, and log each of them."""
    return "Done, and logged."


@app.tool
async def test_logging_tool() -> str:
    """Log a message, for the clients that ask for a level."""
    return "Logged."


# Tools that change what is registered, while the server runs.


def test_dynamic_tool() -> str:
    """Be there, now and then."""
    return "I am here now."


@app.tool
async def test_trigger_tool_change() -> str:
    """Add a tool, or remove it again."""
    if "test_dynamic_tool" in app.registry.tools:
        app.remove_tool("test_dynamic_tool")
    else:
        app.add_tool(test_dynamic_tool)
    return "The list of tools has changed."


def test_dynamic_prompt() -> str:
    """Be there, now and then."""
    return "I am here now."


@app.tool
async def test_trigger_prompt_change() -> str:
    """Add a prompt, or remove it again."""
    if "test_dynamic_prompt" in app.registry.prompts:
        app.remove_prompt("test_dynamic_prompt")
    else:
        app.add_prompt(test_dynamic_prompt)
    return "The list of prompts has changed."


# Tools that ask. The first call returns questions, each under a key; the client
# calls again with the answers. What the server must remember until then is the
# request state: the client brings it back, and can neither change nor reuse it.


def form(message: str, **properties: dict[str, Any]) -> dict[str, Any]:
    """Ask the user to fill in a form."""
    schema = {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if "default" not in properties[name]],
    }
    params = {"message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def sample(text: str) -> dict[str, Any]:
    """Ask the client's model."""
    message = {"role": "user", "content": {"type": "text", "text": text}}
    params = {"messages": [message], "maxTokens": 100}
    return {"method": "sampling/createMessage", "params": params}


ROOTS = {"method": "roots/list", "params": {}}
NAME = form("What is your name?", name={"type": "string"})
CONFIRM = form("Shall I?", ok={"type": "boolean"})


def filled_in(ctx: Context, key: str) -> dict[str, Any] | None:
    """Return what the user filled in, or `None` while nobody has been asked."""
    answer = ctx.input_responses.get(key)
    if answer is None:
        return None
    if answer.get("action") != "accept":
        raise ToolError("The user would rather not say.")
    content: dict[str, Any] = answer.get("content", {})
    return content


@app.tool
def test_input_required_result_elicitation(ctx: Context) -> str | Result:
    """Ask the user for a name."""
    answer = filled_in(ctx, "user_name")
    if answer is None:
        return Result.input_required({"user_name": NAME})
    return f"Hello, {answer['name']}!"


@app.tool
def test_input_required_result_sampling(ctx: Context) -> str | Result:
    """Ask the client's model for a capital."""
    answer = ctx.input_responses.get("capital_question")
    if answer is None:
        question = sample("What is the capital of France?")
        return Result.input_required({"capital_question": question})
    return f"The model says: {answer['content']['text']}"


@app.tool
def test_input_required_result_list_roots(ctx: Context) -> str | Result:
    """Ask the client which folders it works in."""
    answer = ctx.input_responses.get("client_roots")
    if answer is None:
        return Result.input_required({"client_roots": ROOTS})
    return "Roots: " + ", ".join(root["uri"] for root in answer["roots"])


@app.tool
def test_input_required_result_request_state(ctx: Context) -> str | Result:
    """Ask, and remember with the client's help."""
    if ctx.request_state is None or filled_in(ctx, "confirm") is None:
        return Result.input_required({"confirm": CONFIRM}, "asked")
    return "state-ok"


@app.tool
def test_input_required_result_multiple_inputs(ctx: Context) -> str | Result:
    """Ask three questions at once."""
    questions = {
        "user_name": NAME,
        "greeting": sample("How do you greet someone?"),
        "client_roots": ROOTS,
    }
    if not questions.keys() <= ctx.input_responses.keys():
        return Result.input_required(questions, "asked")
    return "All three are answered."


@app.tool
def test_input_required_result_multi_round(ctx: Context) -> str | Result:
    """Ask one question after the other."""
    if ctx.request_state is None:
        return Result.input_required({"name": NAME}, "first")
    if ctx.request_state == "first":
        answer = filled_in(ctx, "name")
        if answer is None:
            return Result.input_required({"name": NAME}, "first")
        colour = form("Which colour do you like?", colour={"type": "string"})
        return Result.input_required({"colour": colour}, f"name: {answer['name']}")
    return f"I remember: {ctx.request_state}."


@app.tool
def test_input_required_result_tampered_state(ctx: Context) -> str | Result:
    """Ask, and refuse a request state that someone changed."""
    if ctx.request_state is None:
        return Result.input_required({"confirm": CONFIRM}, "asked")
    return "The state is as it was."


@app.tool
def test_input_required_result_capabilities(ctx: Context) -> str | Result:
    """Ask only what the client can answer."""
    questions = {
        "sampling": sample("Which season is it?"),
        "elicitation": NAME,
        "roots": ROOTS,
    }
    asked = {key: questions[key] for key in questions if key in ctx.client_capabilities}
    if not asked:
        return "There is nothing that this client can answer."
    if not asked.keys() <= ctx.input_responses.keys():
        return Result.input_required(asked)
    return f"Answered: {', '.join(asked)}."


@app.tool
def test_missing_capability(ctx: Context) -> str | Result:
    """Ask the client's model, whatever the client declares."""
    if "sampled" not in ctx.input_responses:
        return Result.input_required({"sampled": sample("Are you there?")})
    return "The client can sample."


@app.tool
def test_streaming_elicitation(ctx: Context) -> str | Result:
    """Ask the user to confirm, in the result."""
    if filled_in(ctx, "confirm") is None:
        return Result.input_required({"confirm": CONFIRM})
    return "Confirmed."


@app.tool
def test_sampling(prompt: str, ctx: Context) -> str | Result:
    """Ask the client's model."""
    answer = ctx.input_responses.get("sampled")
    if answer is None:
        return Result.input_required({"sampled": sample(prompt)})
    return f"LLM response: {answer['content']['text']}"


@app.tool
def test_elicitation(message: str, ctx: Context) -> str | Result:
    """Ask the user."""
    answer = filled_in(ctx, "user")
    if answer is None:
        text = {"type": "string"}
        return Result.input_required({"user": form(message, username=text, email=text)})
    return f"User response: {answer}"


@app.tool
def test_elicitation_sep1034_defaults(ctx: Context) -> str | Result:
    """Show a form whose fields are filled in already."""
    answer = filled_in(ctx, "settings")
    if answer is not None:
        return f"Elicitation completed: {answer}"
    settings = form(
        "Please review these.",
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={
            "type": "string",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        verified={"type": "boolean", "default": True},
    )
    return Result.input_required({"settings": settings})


@app.tool
def test_elicitation_sep1330_enums(ctx: Context) -> str | Result:
    """Show every way to choose from a list."""
    answer = filled_in(ctx, "choices")
    if answer is not None:
        return f"Elicitation completed: {answer}"
    plain = ["option1", "option2", "option3"]
    titled = [
        {"const": "value1", "title": "First Option"},
        {"const": "value2", "title": "Second Option"},
    ]
    choices = form(
        "Please choose.",
        untitledSingle={"type": "string", "enum": plain},
        titledSingle={"type": "string", "oneOf": titled},
        legacyEnum={"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
        untitledMulti={"type": "array", "items": {"type": "string", "enum": plain}},
        titledMulti={"type": "array", "items": {"anyOf": titled}},
    )
    return Result.input_required({"choices": choices})


# Resources: a URI of its own, or a template for a family of them.


@app.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """Read a text."""
    return "This is the content of the static text resource."


@app.resource("test://static-binary", mime_type="image/png", ttl_ms=3_600_000)
def static_binary() -> bytes:
    """Read an image."""
    return RED_PIXEL


@app.resource("test://watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """Read what clients may subscribe to."""
    return "This is the content of the watched resource."


@app.resource("test://template/{id}/data", mime_type="application/json")
def template_data(id: str) -> dict[str, str]:  # noqa: A002  # the template's name
    """Read the data of one id."""
    return {"id": id, "data": f"Data for ID: {id}"}


# Prompts: a text, or messages.


@app.prompt
def test_simple_prompt() -> str:
    """Say something simple."""
    return "This is a simple prompt for testing."


@app.prompt
def test_prompt_with_arguments(
    arg1: Annotated[str, Field(description="The first argument.")],
    arg2: Annotated[str, Field(description="The second argument.")],
) -> str:
    """Say something about two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@app.prompt(name="test_prompt_with_embedded_resource")
def prompt_with_embedded_resource(
    resourceUri: str,  # noqa: N803  # what clients know it as
) -> list[Message]:
    """Ask about the contents of a resource."""
    return [
        Message(File(resourceUri, "The embedded contents.", "text/plain")),
        Message("What does the resource above say?"),
    ]


@app.prompt
def test_prompt_with_image() -> list[Message]:
    """Ask about an image."""
    return [Message(Image(RED_PIXEL)), Message("What colour is this?")]


@app.prompt
def test_input_required_result_prompt(ctx: Context) -> str | Result:
    """Ask the user before there is a prompt."""
    answer = filled_in(ctx, "user_context")
    if answer is None:
        question = form("What is it about?", context={"type": "string"})
        return Result.input_required({"user_context": question})
    return f"Tell me about {answer['context']}."


# Completions: what may follow what was typed.


@app.complete("test_prompt_with_arguments", "arg1")
def complete_arg1(value: str) -> list[str]:
    """Suggest values for the first argument of a prompt."""
    return [word for word in ("paris", "park", "party") if word.startswith(value)]


@app.complete("test://template/{id}/data", "id")
def complete_id(value: str) -> list[str]:
    """Suggest ids for a resource template."""
    return [number for number in ("123", "124", "200") if number.startswith(value)]
