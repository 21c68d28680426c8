"""A bucket of S3 for a test run: moto's server, which checks the signatures of whoever is not this."""

import contextlib
import re

from .sqs import Sqs

SCOPE = "AWS4-HMAC-SHA256 Credential=k/20261126/us-east-1/{}/aws4_request, SignedHeaders=host, Signature=s"
# Requests without a valid signature that are let through.
ANY = 1_000_000


class S3(Sqs):
    """A server with a bucket in memory."""

    def __init__(self, bucket):
        super().__init__()
        self.bucket = bucket
        self._sign(ANY)
        made = self.http.put(f"/{bucket}", headers={"authorization": SCOPE.format("s3")})
        assert made.status_code == 200, made.text
        self._iam("CreateUser", UserName="node")
        said = self._iam("CreateAccessKey", UserName="node")
        document = '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"}]}'
        self._iam("PutUserPolicy", UserName="node", PolicyName="files", PolicyDocument=document)
        self.environment = {
            "AWS_ACCESS_KEY_ID": re.search("<AccessKeyId>(.*?)<", said)[1],
            "AWS_SECRET_ACCESS_KEY": re.search("<SecretAccessKey>(.*?)<", said)[1],
        }
        self._sign(0)

    def settings(self, **more):
        wanted = {"bucket": self.bucket, "region": "us-east-1", "endpoint": self.url, "prefix": "chat/", **more}
        return {f"upload__s3_{key}": value for key, value in wanted.items()}

    def objects(self):
        """What is in the bucket, by its names."""
        with self._unsigned():
            listed = self.http.get(f"/{self.bucket}?list-type=2", headers={"authorization": SCOPE.format("s3")})
            assert listed.status_code == 200, listed.text
            names = re.findall("<Key>(.*?)</Key>", listed.text)
            found = {}
            for name in names:
                answer = self.http.get(f"/{self.bucket}/{name}", headers={"authorization": SCOPE.format("s3")})
                found[name] = answer.content
            return found

    @contextlib.contextmanager
    def _unsigned(self):
        self._sign(ANY)
        try:
            yield
        finally:
            self._sign(0)

    def _sign(self, after):
        """Has signatures checked, after so many requests."""
        answer = self.http.post("/moto-api/reset-auth", content=str(after))
        assert answer.status_code == 200, answer.text

    def _iam(self, action, **fields):
        body = {"Action": action, "Version": "2010-05-08", **fields}
        answer = self.http.post("/", data=body, headers={"authorization": SCOPE.format("iam")})
        assert answer.status_code == 200, answer.text
        return answer.text
