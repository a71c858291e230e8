"""What an engine's threads hand over."""

from dataclasses import dataclass


@dataclass
class SingleRequestStreamOutput:
    """What one generation made since the last time."""

    delta_token_ids: list[int]
    delta_logprob_json_strs: list[str] | None
    finish_reason: str | None
    request_final_usage_json_str: str | None
    extra_prefix_string: str


class RequestStreamOutput:
    """Of one request; like MLC's, it can be unpacked once only."""

    def __init__(self, request_id: str, made: SingleRequestStreamOutput) -> None:
        self._content = (request_id, [made])
        self._unpacked = False

    def unpack(self) -> tuple[str, list[SingleRequestStreamOutput]]:
        assert not self._unpacked, "One RequestStreamOutput can be unpacked for at most once."
        self._unpacked = True
        return self._content
