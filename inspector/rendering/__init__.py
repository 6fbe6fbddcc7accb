"""Session content to something that can be shown: parts without Qt, then documents that read no file and no network.

`records`, `blocks` and `tool_inputs` make `parts` (a worker may run them); `writer` puts parts into a `SafeDocument`.
The widgets are in `inspector.views.detail`.
"""
