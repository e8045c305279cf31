"""CD611: which files of cuDNN the live check had mapped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cudnn_doctor.model.base import value_or
from cudnn_doctor.model.report import Evidence
from cudnn_doctor.rules.base import Case, Outcome, passed, problem, rule
from cudnn_doctor.rules.facts import copies, same_version
from cudnn_doctor.rules.live_calls import with_note
from cudnn_doctor.rules.live_result import (
    FOLLOWS,
    live_outcomes,
    loaded_by_someone,
    note_of,
    version_by_files,
)
from cudnn_doctor.rules.remedies import again, cure, fix, without_folders
from cudnn_doctor.rules.sample import CUDNN_DIR, live, sample


@rule(
    "CD611",
    title="Where the sub-libraries came from",
    severity="error",
    owner="environment",
    causes=("cudnn-sublibs-mixed",),
    explain="""The live check notes which files were really mapped. All of cuDNN must come from one folder, and its
version must be the one that the copy has by every other reading. A mixture may pass one convolution and fail at the
next call that needs another sub-library.""",
    source="/proc/self/maps of the child after the convolution",
    examples=lambda: (
        ("ok", live()),
        (
            "problem",
            live(
                steps=with_note("libraries", [f"{CUDNN_DIR}/libcudnn.so.9", "/opt/old/libcudnn_cnn.so.9"]),
            ),
        ),
        ("problem", live(cudnn_version="9.1.0")),
        ("skipped", sample(live=())),
    ),
    follows=FOLLOWS,
)
def mapped(case: Case) -> Iterator[Outcome]:
    for found in live_outcomes(case):
        note = note_of(found.result, "libraries")
        if found.kind != "good" or note is None:
            continue
        index, step = note
        paths = [str(p) for p in step.value or () if "/libcudnn" in str(p)]
        folders = sorted({p.rpartition("/")[0] for p in paths})
        evidence = [
            Evidence(pointer=f"{found.pointer}/steps/{index}/value", value=", ".join(folders), source=step.call),
        ]
        expected, said = version_by_files(case, found), found.result.cudnn_version
        if (len(folders) < 2 or _one_release(case, folders)) and (
            not expected or not said or same_version(expected, said)
        ):
            where = "one folder" if len(folders) < 2 else f"{len(folders)} folders of one release"
            yield passed(found.subject, f"All {len(paths)} files of cuDNN are from {where}", evidence=evidence)
            continue
        evidence.append(Evidence(pointer=f"{found.pointer}/cudnn_version", value=said, source="cudnnGetVersion"))
        yield problem(
            found.subject,
            f"cuDNN is mixed from {' and '.join(folders)}"
            if len(folders) > 1
            else f"It answers version {said}, its files are of {expected}",
            evidence=evidence,
            fixes=[
                cure("Take the other folder out of LD_LIBRARY_PATH.", leave, verify=again("CD611"))
                if (leave := without_folders(case, *(f for f in folders if f != _folder(found.result.cudnn))))
                else fix(
                    "See which file is foreign or missing in this copy.",
                    "cudnn-doctor check --only CD306 --only CD307",
                    verify=again("CD611"),
                )
            ],
            severity=None if loaded_by_someone(case, found) else "note",
        )


def _one_release(case: Case, folders: Sequence[str]) -> bool:
    """Whether whole copies of the same release lie in all of these folders: which file comes from which is then all the
    same."""
    found = {c.directory: value_or(c.version, "") for _, c in copies(case) if c.kind == "full"}
    versions = [found.get(folder, "") for folder in folders]
    return bool(versions[0]) and all(same_version(versions[0], v) for v in versions)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
