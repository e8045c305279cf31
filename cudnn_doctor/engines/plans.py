"""Execution plans: from an engine's number, from the heuristics, from another plan. Runs in a child."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from enum import IntEnum

from cudnn_doctor.engines.graphs import Graph
from cudnn_doctor.native.backend_enums import Attr, BehaviorNote, Descriptor, NumericalNote, Type, note_name
from cudnn_doctor.native.cudnn_backend import Backend, BackendDescriptor, BackendError, close_all

DESC = Type.BACKEND_DESCRIPTOR
MOST_KNOBS, MOST_NOTES = 64, 16  # the headers count 37 knob types in 8.9 and 46 in 9.27, 10 notes
Knobs = tuple[tuple[int, int], ...]


def engine_for(backend: Backend, graph: BackendDescriptor, index: int) -> BackendDescriptor:
    """The engine with this global index for a graph.

    Raises:
        BackendError: it does not support the graph, the device or this build.
    """
    return backend.made(
        Descriptor.ENGINE,
        (Attr.ENGINE_OPERATION_GRAPH, DESC, [graph]),
        (Attr.ENGINE_GLOBAL_INDEX, Type.INT64, [index]),
    )


def configuration(backend: Backend, engine: BackendDescriptor, knobs: Knobs = ()) -> BackendDescriptor:
    """An engine with its knobs set; those not named keep the engine's defaults."""
    choices: list[BackendDescriptor] = []
    try:
        for knob, value in knobs:
            choices.append(
                backend.made(
                    Descriptor.KNOB_CHOICE,
                    (Attr.KNOB_CHOICE_KNOB_TYPE, Type.KNOB_TYPE, [knob]),
                    (Attr.KNOB_CHOICE_KNOB_VALUE, Type.INT64, [value]),
                )
            )
        chosen = [(Attr.ENGINECFG_KNOB_CHOICES, DESC, choices)] if choices else []
        return backend.made(Descriptor.ENGINECFG, (Attr.ENGINECFG_ENGINE, DESC, [engine]), *chosen)
    finally:
        close_all(choices)


def read_choice(config: BackendDescriptor) -> tuple[int, Knobs]:
    """Global index and knob choices of a configuration."""
    with ExitStack() as stack:
        (engine,) = config.get_descriptors(Attr.ENGINECFG_ENGINE, Descriptor.ENGINE, 1)
        stack.callback(engine.close)
        index = int(engine.get(Attr.ENGINE_GLOBAL_INDEX, Type.INT64)[0])
        # Asked for no elements, 9.19 says that there are none: room for all of them has to be offered.
        choices = config.get_descriptors(Attr.ENGINECFG_KNOB_CHOICES, Descriptor.KNOB_CHOICE, MOST_KNOBS)
        stack.callback(close_all, choices)
        knobs = tuple(
            (
                int(c.get(Attr.KNOB_CHOICE_KNOB_TYPE, Type.KNOB_TYPE)[0]),
                int(c.get(Attr.KNOB_CHOICE_KNOB_VALUE, Type.INT64)[0]),
            )
            for c in choices
        )
    return index, knobs


def config_notes(config: BackendDescriptor) -> tuple[list[str], list[str]]:
    """Names of the behaviour and numerical notes of a configuration's engine; none where it has no such
    attribute."""
    (engine,) = config.get_descriptors(Attr.ENGINECFG_ENGINE, Descriptor.ENGINE, 1)
    with engine:
        return (
            _notes(engine, Attr.ENGINE_BEHAVIOR_NOTE, Type.BEHAVIOR_NOTE, BehaviorNote),
            _notes(engine, Attr.ENGINE_NUMERICAL_NOTE, Type.NUMERICAL_NOTE, NumericalNote),
        )


def _notes(engine: BackendDescriptor, attribute: Attr, type_: Type, kind: type[IntEnum]) -> list[str]:
    try:
        return [note_name(kind, n) for n in engine.get(attribute, type_, MOST_NOTES)]
    except BackendError:
        return []


def build_plan(backend: Backend, handle: int, config: BackendDescriptor) -> BackendDescriptor:
    """A plan for a configuration, built with `handle`; an engine that compiles its kernels does so here.

    Raises:
        BackendError: the configuration cannot run here.
    """
    return backend.made(
        Descriptor.EXECUTION_PLAN,
        (Attr.EXECUTION_PLAN_HANDLE, Type.HANDLE, [handle]),
        (Attr.EXECUTION_PLAN_ENGINE_CONFIG, DESC, [config]),
    )


def workspace_size(plan: BackendDescriptor) -> int:
    """Bytes that the plan wants beside its tensors."""
    return int(plan.get(Attr.EXECUTION_PLAN_WORKSPACE_SIZE, Type.INT64)[0])


def plan_handle(plan: BackendDescriptor) -> int:
    """The handle that built the plan: what a cache of plans must have in its key (MXNet PR 21104)."""
    return int(plan.get(Attr.EXECUTION_PLAN_HANDLE, Type.HANDLE)[0] or 0)


def plan_choice(plan: BackendDescriptor) -> tuple[int, Knobs]:
    """Engine and knobs of a plan."""
    (config,) = plan.get_descriptors(Attr.EXECUTION_PLAN_ENGINE_CONFIG, Descriptor.ENGINECFG, 1)
    with config:
        return read_choice(config)


def clone_plan(plan: BackendDescriptor, graph: Graph, handle: int) -> BackendDescriptor:
    """The same plan for another handle: its own engine and knobs, no heuristics and no measuring.

    `graph` is the same operation, built with `handle`. This is the cure of MXNet PR 21104.
    """
    index, knobs = plan_choice(plan)
    with (
        engine_for(graph.backend, graph.descriptor, index) as engine,
        configuration(graph.backend, engine, knobs) as config,
    ):
        return build_plan(graph.backend, handle, config)


def variant_pack(backend: Backend, uids: Sequence[int], pointers: Sequence[int], workspace: int) -> BackendDescriptor:
    """The memory that one execution works on."""
    return backend.made(
        Descriptor.VARIANT_PACK,
        (Attr.VARIANT_PACK_UNIQUE_IDS, Type.INT64, uids),
        (Attr.VARIANT_PACK_DATA_POINTERS, Type.VOID_PTR, pointers),
        (Attr.VARIANT_PACK_WORKSPACE, Type.VOID_PTR, [workspace]),
    )
