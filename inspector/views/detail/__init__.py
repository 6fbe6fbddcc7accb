"""The detail pane: shows one record or block as the model saw it, as JSON, as bytes, with its links and usage.

`parts` and `presenters` turn decoded JSON into plain parts without Qt (they may run in a worker); `writer` puts parts
into a `SafeDocument`; `long_text` shows what is too large for it.
"""
