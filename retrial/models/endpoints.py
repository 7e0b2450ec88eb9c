"""Where a model's name leads: a base URL, the key's variable, the name that is sent. Pure: the environment is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from retrial.chat import Json
from retrial.errors import UsageError
from retrial.system.secrets import redact_by_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One row of the table: a prefix of model names."""

    prefix: str
    title: str
    base_url: str = ""
    """Empty: only with `--api-base`."""
    keys: tuple[str, ...] = ()
    """Environment variables that may hold the key, the first found wins; none: no key is needed."""
    bases: tuple[str, ...] = ()
    """Environment variables that may hold another base URL."""
    aliases: tuple[str, ...] = ()
    extra: Mapping[str, Json] = field(default_factory=dict)
    """Goes into every request's body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where to ask, as whom, and for what."""

    title: str
    base_url: str
    model: str
    key: str = field(default="", repr=False)
    key_name: str = ""
    """Which environment variable the key is in, or should be in; empty: none is needed."""
    extra: Mapping[str, Json] = field(default_factory=dict)

    @property
    def is_openai(self) -> bool:
        """OpenAI, or whoever is asked in its place."""
        return self.key_name in OPENAI.keys

    @property
    def loopback(self) -> bool:
        return urlsplit(self.base_url).hostname in ("127.0.0.1", "localhost", "::1")


OPENAI = Provider(
    prefix="openai",
    title="OpenAI",
    base_url="https://api.openai.com/v1",
    keys=("OPENAI_API_KEY",),
    bases=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
)

PROVIDERS: tuple[Provider, ...] = (
    OPENAI,
    Provider(
        prefix="openrouter",
        title="OpenRouter",
        base_url="https://openrouter.ai/api/v1",
        keys=("OPENROUTER_API_KEY",),
        extra={"usage": {"include": True}},  # its replies then say what they cost
    ),
    Provider(
        prefix="anthropic",
        title="Anthropic",
        base_url="https://api.anthropic.com/v1",
        keys=("ANTHROPIC_API_KEY",),
    ),
    Provider(
        prefix="gemini",
        title="Google Gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    ),
    Provider(
        prefix="deepseek",
        title="DeepSeek",
        base_url="https://api.deepseek.com/v1",
        keys=("DEEPSEEK_API_KEY",),
    ),
    Provider(prefix="groq", title="Groq", base_url="https://api.groq.com/openai/v1", keys=("GROQ_API_KEY",)),
    Provider(prefix="mistral", title="Mistral", base_url="https://api.mistral.ai/v1", keys=("MISTRAL_API_KEY",)),
    Provider(prefix="xai", title="xAI", base_url="https://api.x.ai/v1", keys=("XAI_API_KEY",)),
    Provider(
        prefix="together",
        title="Together",
        base_url="https://api.together.xyz/v1",
        keys=("TOGETHER_API_KEY", "TOGETHERAI_API_KEY"),
        aliases=("together_ai",),
    ),
    Provider(
        prefix="ollama",
        title="Ollama",
        base_url="http://127.0.0.1:11434/v1",
        bases=("OLLAMA_API_BASE", "OLLAMA_HOST"),
        aliases=("ollama_chat",),
    ),
    Provider(prefix="vllm", title="vLLM", aliases=("hosted_vllm",)),
    Provider(prefix="llamacpp", title="llama.cpp", aliases=("llama.cpp",)),
)


def resolve(name: str, api_base: str | None, environ: Mapping[str, str]) -> Endpoint:
    """Raises: UsageError when the name leads nowhere or the key it needs is not set."""
    prefix, slash, rest = name.partition("/")
    provider = find(prefix) if slash else None
    if not (rest if provider else name):
        raise UsageError(f"Model '{name}' has no name after '{prefix}/'." if name else "The model's name is empty.")
    row = provider or OPENAI
    given = api_base or first_set(environ, row.bases)[1]
    if provider is None and slash and not given:
        known = ", ".join(one.prefix for one in PROVIDERS)
        raise UsageError(f"Unknown provider '{prefix}' in model '{name}'; known: {known}. Or give --api-base URL.")
    base_url = _base_url(row, given)
    if not base_url:
        raise UsageError(f"Model '{name}' needs --api-base URL: where does {row.title} listen?")
    key_name, key = first_set(environ, row.keys)
    if not key and row.keys and not api_base:
        raise UsageError(f"Model '{name}' needs a key for {row.title}: set the environment variable {row.keys[0]}.")
    return Endpoint(
        title=row.title if not given else urlsplit(base_url).netloc.rpartition("@")[2],
        base_url=base_url,
        model=rest if provider else name,
        key=key,
        key_name=key_name,
        extra=row.extra,
    )


def find(prefix: str) -> Provider | None:
    """The provider that a prefix of a model's name stands for."""
    return next((row for row in PROVIDERS if prefix == row.prefix or prefix in row.aliases), None)


def first_set(environ: Mapping[str, str], names: tuple[str, ...]) -> tuple[str, str]:
    """Return the first of these variables that is set, and its value; else the first of all, if any, and nothing."""
    found = ((name, environ[name].strip()) for name in names if environ.get(name, "").strip())
    return next(found, (next(iter(names), ""), ""))


def _base_url(row: Provider, given: str) -> str:
    if not given:
        return row.base_url
    if row.prefix == "ollama":
        return _ollama_url(given)
    url = given.rstrip("/")
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise UsageError(f"'{redact_by_name(given)}' is not a base URL; it should look like http://127.0.0.1:8000/v1.")
    return url


def _ollama_url(given: str) -> str:
    """Ollama's own variable also holds `host`, `host:port`, or the address it listens on: 0.0.0.0."""
    parts = urlsplit(given if "://" in given else f"http://{given}")
    host = parts.hostname or "127.0.0.1"
    host = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    host = f"[{host}]" if ":" in host else host
    login = "".join(parts.netloc.rpartition("@")[:2])
    port = _port(parts.scheme, parts.netloc.removeprefix(login))
    return f"{parts.scheme}://{login}{host}:{port}{parts.path.rstrip('/') or '/v1'}"


def _port(scheme: str, netloc: str) -> int:
    try:
        port = urlsplit(f"//{netloc}").port
    except ValueError as error:
        raise UsageError(f"'{netloc}' has no valid port.") from error
    return port or (443 if scheme == "https" else 11434)


def variables(model: str) -> tuple[str, ...]:
    """Return the environment variables that may hold the model's key and address."""
    provider = find(model.removeprefix("litellm/").partition("/")[0]) or OPENAI
    return (*provider.keys, *provider.bases)
