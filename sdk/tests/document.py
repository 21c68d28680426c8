"""The node's OpenAPI document, as the types of the SDKs are compared with it."""

# What is in the tags of the SDKs, and for operators, not for senders.
LEFT_OUT = {"getLinkFile", "putLinkFile", "deleteLinkFile"}
TAGS = {"notifications", "topics", "devices", "links", "keys"}


def operations(document):
    """The operations that the SDKs have to have, as `METHOD /path`."""
    return {
        f"{method.upper()} {path}"
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method != "parameters" and TAGS & set(operation["tags"]) and operation["operationId"] not in LEFT_OUT
    }


def members(document, name):
    """The members of a schema, those of its parts among them: those that are always there, and all."""
    return _members(document, document["components"]["schemas"][name])


def _members(document, schema):
    if "$ref" in schema:
        return members(document, schema["$ref"].rpartition("/")[2])
    required, properties = set(schema.get("required", ())), set(schema.get("properties", ()))
    for part in schema.get("allOf", ()):
        # One of them may be `null`: then nothing in it is always there.
        choices = part.get("oneOf", [part])
        for choice in (_members(document, one) for one in choices if one.get("type") != "null"):
            properties |= choice[1]
            required |= choice[0] if len(choices) == 1 else set()
    return required, properties


def words(document, name):
    """The values of a schema that is one of several words; none where it is another."""
    schema = document["components"]["schemas"].get(name, {})
    return set(schema["enum"]) if schema.get("type") == "string" and "enum" in schema else None
