"""Files of clients in a bucket of S3, which moto's server is: it checks the signatures of the node."""

import asyncio

import pytest
from test_upload import SIZE, TEXT, Node, slot

from harness.s3 import S3

# Fixtures.
from test_upload import client, node, web  # noqa: F401, isort: skip


@pytest.fixture
def s3():
    s3 = S3("carillon-files")
    yield s3
    s3.end()


@pytest.fixture
async def files(s3, start):
    """A node whose files are in the bucket."""
    made = Node(lambda **settings: start(environment=s3.environment, **settings), **s3.settings())
    yield made
    if made.server.is_running():
        made.server.end()


async def test_a_file_is_in_the_bucket_until_it_is_removed(s3, files, client, web):  # noqa: F811
    alice = await client(files)
    url, headers = await slot(alice)
    put = await web.put(url, content=TEXT, headers=headers)
    assert put.status_code == 201, put.text
    kept = s3.objects()
    assert list(kept.values()) == [TEXT]
    assert all(name.startswith("chat/") for name in kept)
    assert files.contents() == [], "nothing stays in the folder"
    got = await web.get(url)
    assert (got.status_code, got.content) == (200, TEXT)
    part = await web.get(url, headers={"range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, TEXT[10:20])
    last = await web.get(url, headers={"range": "bytes=-7"})
    assert last.content == TEXT[-7:]
    # Many at once.
    answers = await asyncio.gather(*(web.get(url) for _ in range(20)))
    assert all(answer.content == TEXT for answer in answers)
    gone = await web.delete(url, headers={"authorization": f"Bearer {files.server.key}"})
    assert gone.status_code == 204
    assert (await web.get(url)).status_code == 404
    await files.until(lambda: s3.objects() == {}, "the object is removed")


async def test_files_outlive_the_node_and_of_what_broke_off_nothing_is_left(s3, files, client, web):  # noqa: F811
    alice = await client(files)
    url, headers = await slot(alice)
    assert (await web.put(url, content=TEXT, headers=headers)).status_code == 201
    await alice.close()
    files.server.kill()
    files.begin()
    got = await web.get(url)
    assert (got.status_code, got.content) == (200, TEXT)
    bob = await client(files)
    url, headers = await slot(bob)
    short = await web.put(url, content=TEXT[:-1], headers=headers)
    assert short.status_code == 400
    assert len(s3.objects()) == 1
    assert files.contents() == []
    # Within the slot it is done once more.
    assert (await web.put(url, content=TEXT, headers=headers)).status_code == 201
    assert sum(map(len, s3.objects().values())) == 2 * SIZE


async def test_a_bucket_that_is_not_there_is_told_to_whoever_uploads(s3, start, client, web):  # noqa: F811
    elsewhere = Node(
        lambda **settings: start(environment=s3.environment, **settings), **s3.settings(bucket="another-bucket")
    )
    alice = await client(elsewhere)
    url, headers = await slot(alice)
    put = await web.put(url, content=TEXT, headers=headers)
    assert put.status_code == 500, put.text
    assert (await web.get(url)).status_code == 404
    assert elsewhere.contents() == []
    assert "NoSuchBucket" in elsewhere.server.log.read_text()


async def test_who_signs_with_another_key_gets_and_puts_nothing(s3, start, client, web):  # noqa: F811
    wrong = {**s3.environment, "AWS_SECRET_ACCESS_KEY": "another"}
    node = Node(lambda **settings: start(environment=wrong, **settings), **s3.settings())  # noqa: F811
    alice = await client(node)
    url, headers = await slot(alice)
    put = await web.put(url, content=TEXT, headers=headers)
    assert put.status_code == 500, put.text
    assert s3.objects() == {}
