"""Chat templates for callers that hand a turn over in parts, as MediaPipe's tasks do.

MediaPipe's TextSummarizer gives each turn's content as a list, ``[{"type": "text", "text": …,
"mode": "Keypoints"}]``. The templates of most models join the content to a text, and fail there.
"""

from __future__ import annotations

JOINED = (
    "{%- set joined = namespace(turns=[]) -%}"
    "{%- for turn in messages -%}"
    "{%- if turn.content is sequence and turn.content is not string"
    " and turn.content is not mapping -%}"
    "{%- set whole = namespace(text='') -%}"
    "{%- for part in turn.content -%}"
    "{%- set whole.text = whole.text + part.text -%}"
    "{%- endfor -%}"
    "{%- set joined.turns = joined.turns + [{'role': turn.role, 'content': whole.text}] -%}"
    "{%- else -%}"
    "{%- set joined.turns = joined.turns + [turn] -%}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- set messages = joined.turns -%}{{ '' }}"
)
"""The texts of a turn's parts are one text; a turn with a text stays as it is. The last expression
keeps the signs that trim white space from reaching into the model's own template."""


def with_parts(template: str) -> str:
    """`template`, for turns in parts too; turns with a text give what they gave before.

    A template that begins with white space is returned as it is, since how that is trimmed would
    change with what stands before it.
    """
    return template if template[:1].isspace() else JOINED + template
