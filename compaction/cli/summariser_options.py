from __future__ import annotations

import argparse
from pathlib import Path

from compaction.accounting.prices import load_price_book
from compaction.cli.output import warn
from compaction.errors import InputUnreadable
from compaction.strategies.summariser import OfflineSummariser, Summariser
from compaction.summaries.api_client import ApiSettings
from compaction.summaries.consent import ConsentFirst
from compaction.summaries.model_summariser import AnthropicSummariser
from compaction.summaries.run import Listener
from compaction.summaries.summary_request import RequestOptions


def add_summariser(parser: argparse.ArgumentParser) -> None:
    """Who writes summaries; a model is asked only with `--yes`."""
    group = parser.add_argument_group("summaries")
    group.add_argument(
        "--summariser",
        choices=("offline", "anthropic"),
        default="offline",
        help="offline: an extract, nothing is sent (default); anthropic: a model, asked only with --yes",
    )
    group.add_argument("--model", default="", help="the model to ask (default: the session's own)")
    group.add_argument("--base-url", default="", metavar="URL", help="where the API is (default: the SDK's)")
    group.add_argument("--timeout", type=float, default=120.0, metavar="SECONDS", help="silence that ends a call")
    group.add_argument(
        "--prompt", default="", metavar="PROMPT", help="file with the prompt to use instead of the standard one"
    )
    group.add_argument("--keep-images", action="store_true", help="send images and documents too")
    group.add_argument("--yes", action="store_true", help="agree to send what is described without --yes")


def summariser_from(args: argparse.Namespace) -> Summariser:
    """The summariser that was asked for; without `--yes` one that only says what it would send."""
    if args.summariser == "offline":
        return OfflineSummariser()
    options = RequestOptions(model=args.model, keep_images=args.keep_images)
    api = ApiSettings(base_url=args.base_url, timeout=args.timeout)
    prompt = _prompt(args.prompt)
    if not args.yes:
        return ConsentFirst(options, api, load_price_book().set(), prompt)
    listener = Listener(status=lambda line: warn(f"compactoscope: {line}"))
    return AnthropicSummariser(options, api, prompt=prompt, listener=listener)


def _prompt(path: str) -> str:
    if not path:
        return ""
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputUnreadable(f"cannot be read as a prompt: {error}", "give a text file", path) from error
