"""Everything that mcpkit can serve, one function each.

    uvicorn examples.everything:app

The names are those that the official conformance suite looks for, so that this
file is also what `tests/conformance` runs the suite against. One of the tools
brings a JSON Schema of its own, which needs the extra `mcpkit[schema]`.
"""

import asyncio
import base64
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field

from mcpkit import (
    Answer,
    App,
    Audio,
    Context,
    Elicit,
    File,
    Header,
    Image,
    ListRoots,
    Message,
    ProtocolError,
    Result,
    Sample,
    Text,
    ToolError,
)

T = TypeVar("T")

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


# Tools that tell how it goes. The client hears of it while it waits for the result.


async def work() -> None:
    """Do what takes a moment."""
    await asyncio.sleep(0.05)


@app.tool
async def test_tool_with_progress(ctx: Context) -> str:
    """Work in steps, and report each of them."""
    for percent in (0, 50, 100):
        await ctx.progress(percent, total=100, message=f"{percent} % are done.")
        await work()
    return "Everything is done."


@app.tool
async def test_tool_with_logging(ctx: Context) -> str:
    """Work in steps, and log each of them."""
    for step in ("started", "processing data", "completed"):
        await ctx.log("info", f"Tool execution {step}", logger="everything")
        await work()
    return "Done, and logged."


@app.tool
async def test_logging_tool(ctx: Context) -> str:
    """Log messages, for the clients that ask for their level."""
    await ctx.log("debug", {"step": 1, "of": 2})
    await ctx.log("warning", "This is the last step.")
    return "Logged."


@app.tool
async def test_reconnection(ctx: Context) -> str:
    """Close the connection of a client that can come back for the result."""
    await ctx.close_stream()
    await work()
    return "The work went on while nobody was connected."


# Tools that change what clients know, while the server runs.

watched = {"version": 1}


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


@app.tool
async def test_trigger_resource_update() -> str:
    """Change the resource that clients may subscribe to."""
    watched["version"] += 1
    app.notify_resource_updated("test://watched-resource")
    return f"Version {watched['version']} is there."


# Tools that ask. It reads as if the function waited for the answer. A client of
# 2025 is asked on the way, and it does wait. A client of 2026 is given the question
# as the result, and calls again with the answer; the function then runs anew.


class Settings(BaseModel):
    """A form that is filled in already."""

    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


class User(BaseModel):
    """Who somebody is."""

    username: str
    email: str


class Name(BaseModel):
    """What somebody is called."""

    name: str


class Color(BaseModel):
    """What somebody likes."""

    color: str


class Deletion(BaseModel):
    """Whether something is to go."""

    confirm: bool


class Topic(BaseModel):
    """What somebody wants to know about."""

    context: str


class Confirm(BaseModel):
    """Yes or no."""

    ok: bool


def filled_in(answer: Answer[T]) -> T:
    """Return what the user filled in."""
    if not answer.accepted:
        raise ToolError("The user would rather not say.")
    return answer.data


@app.tool
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Ask the client's model."""
    answer = await ctx.sample(prompt, max_tokens=100)
    return f"LLM response: {answer.text}"


@app.tool
async def test_elicitation(message: str, ctx: Context) -> str:
    """Ask the user."""
    user = filled_in(await ctx.elicit(message, User))
    return f"User response: {user.username}, {user.email}"


@app.tool
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Show a form whose fields are filled in already."""
    settings = filled_in(await ctx.elicit("Please review these.", Settings))
    return f"Elicitation completed: {settings.model_dump()}"


PLAIN = {"type": "string", "enum": ["option1", "option2", "option3"]}
TITLED = [
    {"const": "value1", "title": "First Option"},
    {"const": "value2", "title": "Second Option"},
]
CHOICES = {
    "type": "object",
    "properties": {
        "untitledSingle": PLAIN,
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
        "untitledMulti": {"type": "array", "items": PLAIN},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
}


@app.tool
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Show every way to choose from a list, with a form of one's own."""
    choices = filled_in(await ctx.elicit("Please choose.", CHOICES))
    return f"Elicitation completed: {choices}"


@app.tool
async def test_streaming_elicitation(ctx: Context) -> str:
    """Ask the user to confirm, in the middle of the work."""
    await ctx.progress(1, total=2)
    sure = filled_in(await ctx.elicit("Shall I go on?", Confirm))
    return "Confirmed." if sure.ok else "Not confirmed."


@app.tool
async def test_missing_capability(ctx: Context) -> str:
    """Ask the client's model, whatever the client declares."""
    await ctx.sample("Are you there?")
    return "The client can sample."


@app.tool
async def test_input_required_result_sampling(ctx: Context) -> str:
    """Ask the client's model for a capital."""
    answer = await ctx.sample("What is the capital of France?")
    return f"The model says: {answer.text}"


@app.tool
async def test_input_required_result_list_roots(ctx: Context) -> str:
    """Ask the client which folders it works in."""
    return "Roots: " + ", ".join(root.uri for root in await ctx.list_roots())


@app.tool
async def test_input_required_result_multiple_inputs(ctx: Context) -> str:
    """Ask three questions at once."""
    answers = await ctx.ask(
        {
            "user_name": Elicit("What is your name?", Name),
            "greeting": Sample("How do you greet someone?", max_tokens=100),
            "client_roots": ListRoots(),
        }
    )
    name = filled_in(answers["user_name"]).name
    places = len(answers["client_roots"])
    return f"{answers['greeting'].text} {name}, you work in {places} folders."


@app.tool
async def test_input_required_result_multi_round(ctx: Context) -> str:
    """Ask one question after the other."""
    user = filled_in(await ctx.elicit("What is your name?", Name))
    liked = filled_in(await ctx.elicit(f"What do you like, {user.name}?", Color))
    return f"{user.name} likes {liked.color}."


@app.tool
async def test_input_required_result_capabilities(ctx: Context) -> str:
    """Ask only what the client can answer."""
    asked: dict[str, Any] = {}
    if "sampling" in ctx.client_capabilities:
        asked["sampling"] = Sample("Which season is it?", max_tokens=100)
    if "elicitation" in ctx.client_capabilities:
        asked["elicitation"] = Elicit("What is your name?", Name)
    if "roots" in ctx.client_capabilities:
        asked["roots"] = ListRoots()
    if not asked:
        return "There is nothing that this client can answer."
    answers = await ctx.ask(asked)
    return f"Answered: {', '.join(answers)}."


# The same by hand: a result that asks. What the function must know when it is called
# again is the state: the client brings it back, and can neither change nor reuse it.

NAME = {
    "method": "elicitation/create",
    "params": {
        "message": "What is your name?",
        "requestedSchema": {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        },
    },
}
CONFIRM = {
    "method": "elicitation/create",
    "params": {
        "message": "Shall I?",
        "requestedSchema": {
            "type": "object",
            "properties": {"ok": {"type": "boolean"}},
            "required": ["ok"],
        },
    },
}


@app.tool
def test_input_required_result_elicitation(ctx: Context) -> str | Result:
    """Ask the user for a name."""
    answer = ctx.input.responses.get("user_name")
    if answer is None:
        return Result.input_required({"user_name": NAME})
    if answer.get("action") != "accept":
        raise ToolError("The user would rather not say.")
    return f"Hello, {answer['content']['name']}!"


@app.tool
def test_input_required_result_request_state(ctx: Context) -> str | Result:
    """Ask, and remember with the client's help."""
    if ctx.input.state is None:
        return Result.input_required({"confirm": CONFIRM}, "asked to confirm")
    return f"state-ok: you were {ctx.input.state}."


@app.tool
def test_input_required_result_tampered_state(ctx: Context) -> str | Result:
    """Ask, and have a state refused that somebody changed."""
    if ctx.input.state is None:
        return Result.input_required({"confirm": CONFIRM}, "asked")
    return "The state is as it was."


# Tools that take long: they answer with a handle at once, and the client looks how the
# task stands. One that does not know tasks waits for the result as ever.


@app.tool
def greet(name: str) -> str:
    """Greet somebody, at once."""
    return f"Hello, {name}!"


@app.tool(task="optional")
async def slow_compute(seconds: float, ctx: Context, label: str = "it") -> str:
    """Work for some seconds."""
    await ctx.progress(0, total=seconds, message=f"Computing {label}.")
    await asyncio.sleep(seconds)
    return f"Computed {label} for {seconds:g} s."


@app.tool(task="required")
async def failing_job() -> str:
    """Fail, with words that the model can read: the task itself is complete."""
    await asyncio.sleep(1)
    raise ToolError("This job intentionally fails for testing.")


@app.tool(task="optional")
async def protocol_error_job() -> str:
    """Fail as a request does: so does the task."""
    await work()
    raise ProtocolError(-32603, "This job intentionally breaks for testing.")


@app.tool(task="optional")
async def confirm_delete(filename: str, ctx: Context) -> str:
    """Ask in the middle of the work."""
    await work()
    answer = filled_in(await ctx.elicit(f"Delete {filename}?", Deletion))
    return f"{filename} is {'deleted' if answer.confirm else 'still there'}."


@app.tool(task="optional")
async def multi_input(ctx: Context) -> str:
    """Ask two questions at once, which may be answered one after the other."""
    answers = await ctx.ask(
        {
            "name": Elicit("What is your name?", Name),
            "friend": Elicit("What is your friend's name?", Name),
        }
    )
    names = [filled_in(answers[key]).name for key in ("name", "friend")]
    return f"{names[0]} and {names[1]} know each other."


async def user_name(ctx: Context) -> str:
    """Ask the user for a name."""
    answers = await ctx.ask({"user_name": Elicit("What is your name?", Name)})
    answer: Answer[Name] = answers["user_name"]
    return filled_in(answer).name


async def when_it_is_known(ctx: Context) -> bool:
    """Ask before there is a task; the tool has the answer then."""
    return bool(await user_name(ctx))


@app.tool(task=when_it_is_known)
async def test_tool_with_task(ctx: Context) -> str:
    """Ask first, and work for somebody afterwards."""
    return f"Worked for {await user_name(ctx)}."


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
    return f"This is version {watched['version']} of the watched resource."


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
async def test_input_required_result_prompt(ctx: Context) -> str:
    """Ask the user before there is a prompt."""
    answers = await ctx.ask({"user_context": Elicit("What is it about?", Topic)})
    return f"Tell me about {filled_in(answers['user_context']).context}."


# Completions: what may follow what was typed.


@app.complete("test_prompt_with_arguments", "arg1")
def complete_arg1(value: str) -> list[str]:
    """Suggest values for the first argument of a prompt."""
    return [word for word in ("paris", "park", "party") if word.startswith(value)]


@app.complete("test://template/{id}/data", "id")
def complete_id(value: str) -> list[str]:
    """Suggest ids for a resource template."""
    return [number for number in ("123", "124", "200") if number.startswith(value)]
