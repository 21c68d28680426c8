"""What can go wrong."""

from __future__ import annotations

from .types import Problem


class CarillonError(Exception):
    """Any error of this package."""


class NoAnswer(CarillonError):
    """No answer came, or not all of it. Whether the request was done is not known."""


class ApiError(CarillonError):
    """The node refused a request.

    `code` keeps its meaning and is what to decide by; `detail` is for people; `pointer` names the member of the body. Quote `request_id`
    when you ask for help. `retry_after` is the number of seconds that the node asked to wait, if it did. `problem` has all that it said.
    """

    def __init__(self, status: int, problem: Problem, retry_after: float | None) -> None:
        self.status = status
        self.problem = problem
        self.code = problem["code"]
        self.detail = problem["detail"]
        self.pointer = problem.get("pointer")
        self.request_id = problem.get("request_id")
        self.retry_after = retry_after
        about = f" (request {self.request_id})" if self.request_id else ""
        super().__init__(f"{status} {self.code}: {self.detail}{about}")


class BadSignature(CarillonError):
    """A request to a webhook was not signed with its secret, or not lately. Answer 400, and do not use it."""
