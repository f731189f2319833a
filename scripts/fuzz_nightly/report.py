# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""The summary of a session, in Markdown."""


def size_of(folder) -> tuple[int, int]:
    """Files and bytes of a corpus."""
    sizes = [p.stat().st_size for p in folder.iterdir()] if folder.is_dir() else []
    return len(sizes), sum(sizes)


def rate(runs: int, seconds: float) -> str:
    """Runs a second; nothing where the time kept, in hundredths of a second, is 0."""
    return f"{runs / seconds:,.0f}" if seconds > 0 else ""


def summary(session, jobs: dict, found: dict, passing: list, absent: list[str]) -> str:
    """`found`: by cause (row of the ledger, how often). `passing`: rows that fail no more."""
    head = session.head
    done = list(session.done.values())
    spent = sum(entry["seconds"] for entry in done)
    lines = [
        f"Session {head['number']}: {len(done)} of {head['slices']} slices, {spent / 60:.1f} "
        f"minutes of {head['workers']} workers together.",
        "",
        "| job | slices | seconds | runs | runs/s | features | new inputs | corpus |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, job in jobs.items():
        entries = [entry for entry in done if entry["job"] == name]
        if not entries:
            continue
        seconds = sum(entry["seconds"] for entry in entries)
        runs = sum(entry.get("runs", 0) for entry in entries)
        if hasattr(job, "corpus"):
            files, size = size_of(job.corpus)
            lines.append(
                f"| {name} | {len(entries)} | {seconds:.0f} | {runs:,} | {rate(runs, seconds)} | "
                f"{max(entry.get('features', 0) for entry in entries):,} | "
                f"{sum(entry.get('new', 0) for entry in entries):,} | {files:,} files, "
                f"{size / 1024:,.0f} KiB |")
        else:
            counted = f"{runs:,} | {rate(runs, seconds)}" if runs else "|"
            lines.append(f"| {name} | {len(entries)} | {seconds:.0f} | {counted} | | | |")
    flips = {entry["job"]: entry["bound_ratio"] for entry in done if entry.get("bound_ratio")}
    if flips:
        lines += ["", "Flips, margin ÷ bound, all nights together: " + ", ".join(
            f"{name} {ratio:.3f}" for name, ratio in sorted(flips.items())) + "."]
    if absent:
        lines += ["", *absent]
    new = [(row, times) for row, times in found.values() if not row["reason"]]
    known = [(row, times) for row, times in found.values() if row["reason"]]
    lines += ["", f"New findings: {len(new)}. Known findings that came again: {len(known)}. Known "
              f"findings that pass: {len(passing)}."]
    for title, rows in (("new", new), ("known", known)):
        for row, times in rows:
            lines.append(f"- {title}, {times} times: {row['input']}: {row['kind']}"
                         + (f" in {', '.join(row['frames'])}" if row["frames"] else "")
                         + (f" ({row['reason']})" if row["reason"] else ""))
    for row, why in passing:
        lines.append(f"- {row['input']} {why}: take its row out of the ledger, and move its input "
                     f"to fuzz/corpora/{row['target']}/")
    return "\n".join(lines) + "\n"
