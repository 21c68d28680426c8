"""Amazon SQS for a test run: moto's server, on a port of its own, and what somebody does with it who is not Carillon."""

import collections
import json
import os
import re
import subprocess
import threading

import httpx

from .inbox import DEADLINE_S
from .server import ROOT

ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "us-east-1"}
SCOPE = "AWS4-HMAC-SHA256 Credential=k/20261126/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=s"


class Sqs:
    """A server with queues in memory."""

    def __init__(self):
        program = os.environ.get("MOTO_SERVER", ROOT / "target/interop/moto/bin/moto_server")
        self.process = subprocess.Popen(
            [program, "-H", "127.0.0.1", "-p", "0"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        self.url = None
        for line in self.process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                self.url = found[0]
                break
        assert self.url, "moto_server does not start"
        # It says each request: a pipe that nobody reads stops it.
        self.reader = threading.Thread(target=collections.deque, args=(self.process.stderr, 0), daemon=True)
        self.reader.start()
        self.http = httpx.Client(base_url=self.url, timeout=DEADLINE_S, trust_env=False)

    def end(self):
        self.http.close()
        self.process.terminate()
        self.process.wait()
        self.reader.join()
        self.process.stderr.close()

    def call(self, operation, **request):
        headers = {
            "content-type": "application/x-amz-json-1.0",
            "x-amz-target": f"AmazonSQS.{operation}",
            "authorization": SCOPE,
        }
        answer = self.http.post("/", content=json.dumps(request), headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json() if answer.content else {}

    def queue(self, name, fifo=False):
        """Makes a queue with its dead-letter queue; the URL of the first."""
        suffix = ".fifo" if fifo else ""
        attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "false"} if fifo else {}
        dead = self.call("CreateQueue", QueueName=f"{name}-dead{suffix}", Attributes=attributes)["QueueUrl"]
        arn = self.attributes(dead, "QueueArn")["QueueArn"]
        policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1000})
        made = self.call("CreateQueue", QueueName=f"{name}{suffix}", Attributes=attributes | {"RedrivePolicy": policy})
        return made["QueueUrl"]

    def attributes(self, url, *names):
        return self.call("GetQueueAttributes", QueueUrl=url, AttributeNames=list(names or ["All"])).get(
            "Attributes", {}
        )

    def send(self, url, body, group=None, once=None, **attributes):
        more = {"MessageGroupId": group, "MessageDeduplicationId": once} if group else {}
        named = {
            name.replace("_", "-"): {"DataType": "String", "StringValue": value} for name, value in attributes.items()
        }
        text = body if isinstance(body, str) else json.dumps(body)
        return self.call("SendMessage", QueueUrl=url, MessageBody=text, MessageAttributes=named, **more)

    def left(self, url):
        """How many messages a queue has, those that somebody was given included."""
        counts = self.attributes(url, "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        return sum(int(count) for count in counts.values())
