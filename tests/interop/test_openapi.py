"""The OpenAPI document, by somebody else's rules."""

from openapi_spec_validator import OpenAPIV31SpecValidator


async def test_the_document_is_valid(api):
    document = await api.ok("GET", "/openapi.json")
    errors = [
        f"{'/'.join(map(str, error.absolute_path))}: {error.message}"
        for error in OpenAPIV31SpecValidator(document).iter_errors()
    ]
    assert not errors, "\n".join(errors)
