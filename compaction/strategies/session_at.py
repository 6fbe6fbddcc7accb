from __future__ import annotations

from compaction.conversation import Conversation, build_conversation
from compaction.errors import UsageError
from compaction.transcript import Transcript, transcript_from_bytes
from compaction.transcript.edits import RemoveRecord, apply_edits


def session_at(conversation: Conversation, round_number: int) -> Conversation:
    """The session as it stood before API round `round_number`'s response was written.

    Its records are the first ones of the whole session with the same numbers, so a plan made on it can name records
    of either. What came later in the file is not there.

    Raises:
        UsageError: there is no such round.
    """
    cut = first_record_after(conversation, round_number)
    return build_conversation(prefix_of(conversation.transcript, cut))


def first_record_after(conversation: Conversation, round_number: int) -> int:
    """The first record of round `round_number`: everything before it led to that round's response.

    Raises:
        UsageError: there is no such round.
    """
    try:
        return conversation.round(round_number).first_record
    except IndexError as error:
        last = conversation.round_count
        raise UsageError(str(error), f"rounds are 1 to {last}" if last else "the session has no response yet") from None


def round_time_ms(conversation: Conversation, round_number: int) -> int:
    """When round `round_number`'s response was written, milliseconds since the epoch; 0 when unknown."""
    return int(conversation.transcript.timestamp_ms[first_record_after(conversation, round_number)])


def prefix_of(transcript: Transcript, records: int) -> Transcript:
    """A transcript in memory that holds the first `records` records and whatever damage lies among them."""
    if transcript.format_name == "messages-api":
        edits = [RemoveRecord(record) for record in range(records, len(transcript))]
        return transcript_from_bytes(b"".join(apply_edits(transcript, edits)), transcript.name)
    stop = int(transcript.offset[records]) if records < len(transcript) else transcript.size
    return transcript_from_bytes(transcript.raw(0, stop), transcript.name)
