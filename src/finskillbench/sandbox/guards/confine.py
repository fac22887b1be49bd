"""Confinement of a script process, as far as the kernel allows.

A confined process has resource limits, no processes or threads, no network and no superuser privileges. It reads the
interpreter, the libraries and its package, and writes only to its scratch folder. `calls` limits its system calls. The
server tests each guard. Standard library only; all but the resource limits need Linux.

Sources: unshare(2), prctl(2), capabilities(7), landlock(7), getrlimit(2).
"""

import contextlib
import ctypes
import errno
import functools
import os
import resource
import signal
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

LINUX = sys.platform == "linux"
_LIBC = ctypes.CDLL(None, use_errno=True) if LINUX else None
# Resolved once here, not in every child.
_FUNCTIONS = (
    {name: getattr(_LIBC, name) for name in ("syscall", "prctl", "capset", "unshare", "mount")} if LINUX else {}
)

_CLONE_NEWNS, _CLONE_NEWIPC, _CLONE_NEWUSER, _CLONE_NEWNET = 0x00020000, 0x08000000, 0x10000000, 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_PRIVATE = 1 << 1, 1 << 2, 1 << 14, 1 << 18
_PR_SET_PDEATHSIG, _PR_SET_KEEPCAPS, _PR_SET_NO_NEW_PRIVS = 1, 8, 38
_CAP_VERSION_3, _CAP_DAC_READ_SEARCH = 0x20080522, 2
_LANDLOCK_CREATE, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT = 444, 445, 446
_MOUNT_SETATTR, _MOUNT_READ_ONLY, _AT_FDCWD, _AT_RECURSIVE = 442, 1, -100, 0x8000
_NOBODY = 65534
# One user per call (this plus the process id), so that parallel scripts cannot signal or trace each other.
_FIRST_USER = 1_000_000_000
_MOST_TASKS = 4096

# Landlock rights by ABI version; execute, read file and read folder are bits 0, 2 and 3.
_FS_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
_FS_FILE_ONLY = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15
FS_LIST = 1 << 3
FS_READ = 1 << 0 | 1 << 2 | FS_LIST
_NET_RIGHTS, _SCOPES = 0b11, 0b11


class ConfineError(OSError):
    """The kernel or the user cannot apply a guard."""


def libc_call(name: str, *arguments: object) -> int:
    """Call a C library function; raise ConfineError on failure."""
    if not LINUX:
        raise ConfineError(f"{name} needs Linux")
    result = _FUNCTIONS[name](*arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise ConfineError(code, f"{name}: {os.strerror(code)}")
    return result


def _prctl(option: int, value: int) -> None:
    libc_call("prctl", option, ctypes.c_ulong(value), 0, 0, 0)


def network_off() -> bool:
    """Move this process into new network and IPC namespaces, without interfaces; False if not allowed.

    Call before the first thread starts. Without privileges it uses a new user namespace, which also allows the mounts
    of `bound_folder`.
    """
    if not LINUX:
        return False
    namespaces = _CLONE_NEWNET | _CLONE_NEWIPC
    with contextlib.suppress(ConfineError):
        libc_call("unshare", namespaces)
        return True
    user, group = os.geteuid(), os.getegid()
    with contextlib.suppress(ConfineError):
        libc_call("unshare", _CLONE_NEWUSER | namespaces)
        with contextlib.suppress(OSError):
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
        return True
    return False


def bound_folder(folder: Path, total_bytes: int, files: int) -> bool:
    """Mount a size-limited in-memory file system at `folder`, visible to this process only.

    All other file systems become read-only for it, so that reads leave access times unchanged. Returns False if the
    kernel refuses; then only run time limits the number of files. Call before `drop_privileges`.
    """
    with contextlib.suppress(ConfineError):
        libc_call("unshare", _CLONE_NEWNS)
        # Otherwise the mount would propagate to the parent namespace.
        libc_call("mount", b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None)
        options = f"size={total_bytes},nr_inodes={files},mode=700".encode()
        flags = ctypes.c_ulong(_MS_NOSUID | _MS_NODEV)
        libc_call("mount", b"tmpfs", os.fsencode(folder), b"tmpfs", flags, options)
        with contextlib.suppress(ConfineError):  # Linux before 5.12
            _set_mounts(Path("/"), _MOUNT_READ_ONLY, 0)
            _set_mounts(folder, 0, _MOUNT_READ_ONLY)
        give_folder(folder, os.getpid())
        return True
    return False


def _set_mounts(path: Path, on: int, off: int) -> None:
    """Set and clear attributes of all mounts below `path`, for this process only."""
    attributes = struct.pack("QQQQ", on, off, 0, 0)
    place = ctypes.c_int(_AT_FDCWD), os.fsencode(path), ctypes.c_uint(_AT_RECURSIVE)
    libc_call("syscall", _MOUNT_SETATTR, *place, attributes, ctypes.c_size_t(len(attributes)))


def give_folder(folder: Path, pid: int) -> None:
    """Give `folder` to the user that process `pid` gets in `drop_privileges`."""
    if LINUX and os.geteuid() == 0:
        for user in (_FIRST_USER + pid, _NOBODY):
            # EINVAL: the container does not map this user.
            with contextlib.suppress(OSError):
                os.chown(folder, user, user)
                break


def drop_privileges(*, keep_reading: bool) -> None:
    """Switch from superuser to one user per process and drop capabilities.

    `keep_reading` keeps read access to all files, as needed for an environment below /root.
    """
    if LINUX and os.geteuid() == 0:
        if keep_reading:
            _prctl(_PR_SET_KEEPCAPS, 1)
        with contextlib.suppress(PermissionError):
            os.setgroups([])
        for user in (_FIRST_USER + os.getpid(), _NOBODY):
            with contextlib.suppress(OSError):
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)
                break
    if LINUX:
        kept = 1 << _CAP_DAC_READ_SEARCH if keep_reading and os.geteuid() != 0 else 0
        header = struct.pack("Ii", _CAP_VERSION_3, 0)
        # An ordinary user cannot keep the capability: then drop all.
        for low in (kept, 0):
            with contextlib.suppress(ConfineError):
                libc_call("capset", header, struct.pack("6I", low, low, 0, 0, 0, 0))
                break
        with contextlib.suppress(ConfineError):
            _prctl(_PR_SET_NO_NEW_PRIVS, 1)
        with contextlib.suppress(ConfineError):
            # After the change of user, which clears it.
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def limit_resources(*, cpu_seconds: int, memory_bytes: int, file_bytes: int, threads: bool) -> None:
    """Set the resource limits of this process; `memory_bytes` is its total address space."""
    # A limit of 0 is the only bound on forks that also holds for an ordinary user with thousands of processes. With
    # threads,
    # the limit covers all processes of the user.
    tasks = _MOST_TASKS if threads else 0
    wanted = {
        resource.RLIMIT_CPU: (cpu_seconds, cpu_seconds + 1),
        resource.RLIMIT_AS: (memory_bytes, memory_bytes),
        resource.RLIMIT_FSIZE: (file_bytes, file_bytes),
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_NOFILE: (64, 64),
        resource.RLIMIT_NPROC: (tasks, tasks),
    }
    for kind, (soft, hard) in wanted.items():
        # macOS refuses RLIMIT_AS; lower hard limits set outside remain.
        with contextlib.suppress(ValueError, OSError):
            ceiling = resource.getrlimit(kind)[1]
            if ceiling != resource.RLIM_INFINITY:
                soft, hard = min(soft, ceiling), min(hard, ceiling)
            resource.setrlimit(kind, (soft, hard))


def address_space() -> int:
    """Return this process's address space in bytes, 0 if unknown."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return 0
    return pages * resource.getpagesize()


@functools.cache
def landlock_version() -> int:
    """Return the kernel's Landlock ABI version, 0 for none."""
    if not LINUX:
        return 0
    try:
        return libc_call("syscall", _LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint(1))
    except ConfineError:
        return 0


def file_rules(allowed: Iterable[tuple[Path, int]], folder: Path) -> int | None:
    """Create Landlock rules for `allowed` and, with all rights, `folder`; return a descriptor or None.

    Newer kernels also refuse TCP, and signals to outside processes.
    """
    version = landlock_version()
    if version == 0:
        return None
    rights = _FS_RIGHTS[min(version, 5)]
    made = _ruleset(version, rights, _NET_RIGHTS, _SCOPES)
    for path, kind in ((folder, rights), (Path(os.devnull), rights & ~FS_LIST), *allowed):
        add_rule(made, path, kind)
    return made


def _ruleset(version: int, files: int, network: int, scopes: int) -> int:
    attributes = struct.pack("QQQ", files, network, scopes)
    length = 24 if version >= 6 else 16 if version >= 4 else 8
    return libc_call("syscall", _LANDLOCK_CREATE, attributes, ctypes.c_size_t(length), ctypes.c_uint(0))


def add_rule(rules: int, path: Path, allowed: int) -> None:
    """Allow `allowed` below `path`; skip absent paths."""
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not path.is_dir():
            allowed &= _FS_FILE_ONLY
        rule = struct.pack("=Qi", allowed, folder)
        libc_call("syscall", _LANDLOCK_ADD_RULE, ctypes.c_int(rules), ctypes.c_int(1), rule, ctypes.c_uint(0))
    finally:
        os.close(folder)


def landlock(rules: int) -> None:
    """Apply `rules` permanently and close their descriptor; raise ConfineError if another thread runs."""
    tasks = Path("/proc/self/task")
    if tasks.is_dir() and len(os.listdir(tasks)) > 1:  # noqa: PTH208 - every call waits for this
        raise ConfineError(errno.EBUSY, "a thread runs already, which the rules for files would not hold for")
    libc_call("syscall", _LANDLOCK_RESTRICT, ctypes.c_int(rules), ctypes.c_uint(0))
    os.close(rules)
