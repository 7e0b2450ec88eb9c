"""Sees for itself that a sandbox holds, once per boot: limits and walls are tried, not assumed."""

from __future__ import annotations

import tempfile
from pathlib import Path

from retrial.errors import SandboxError
from retrial.protocols import Sandbox
from retrial.types import Environment, Execution, Job, Limits, fingerprint

LIMITS = Limits(seconds=30, memory_mb=512, processes=64, disk_mb=16)
FORKS = LIMITS.processes + 50
HELD = "The probe has ended."

# Each line it prints is a hole. Routes, not interfaces: some kernels put idle tunnels into every network namespace.
# The address is one of those kept for documentation, so nobody is called even if there is a way out.
SCRIPT = f"""
{{ read -r header; read -r route && echo 'there is a route to a network'; }} </proc/net/route
if command -v python3 >/dev/null; then
    python3 -c 'if 1:
        import errno, socket
        with socket.socket() as tried:
            tried.settimeout(0.5)
            if tried.connect_ex(("192.0.2.1", 53)) != errno.ENETUNREACH:
                print("a connection can be tried")'
fi
for folder in / /usr /usr/bin /etc /dev /var/tmp /opt; do
    if (: >"$folder/retrial-probe") 2>/dev/null; then echo "$folder can be written to"; fi
done
if [ -w /proc/sys/kernel/hostname ]; then echo 'settings of the kernel can be changed'; fi
if [ -e "$CANARY" ]; then echo 'files of the host can be seen'; fi
( count=0; while [ $count -lt {FORKS} ]; do sleep 60 & count=$((count + 1)); echo $count >/tmp/count; done ) 2>/dev/null
read -r count </tmp/count
if [ "$count" -ge {FORKS} ]; then echo 'processes are not limited'; fi
echo '{HELD}'
"""


def probe(sandbox: Sandbox, environment: Environment, cache: Path) -> None:
    """Try what a job must not be able to do; what held is not tried again before the next boot.

    Raises: SandboxError when something was possible.
    """
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    key = fingerprint(boot, dict(sandbox.describe()), sandbox.digest(environment), environment.name, SCRIPT)
    held = cache / "probes" / key
    if held.exists():
        return
    if holes := _holes(_try(sandbox, environment)):
        raise SandboxError(f"The sandbox {sandbox.name} does not hold here: {holes}.")
    held.parent.mkdir(parents=True, exist_ok=True)
    held.touch()


def _try(sandbox: Sandbox, environment: Environment) -> Execution:
    with tempfile.NamedTemporaryFile(prefix="retrial-probe-") as canary:
        script = f"CANARY={canary.name}\n{SCRIPT}"
        return sandbox.run(Job(environment=environment, script=script, files={}, limits=LIMITS))


def _holes(seen: Execution) -> str:
    lines = seen.stdout.splitlines()
    if seen.timed_out or HELD not in lines:
        return f"the probe did not end ({(seen.stderr.strip() or 'without a word').splitlines()[-1]})"
    return ", ".join(line for line in lines if line != HELD)
