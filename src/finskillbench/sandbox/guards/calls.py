"""Allow-list of system calls for confined scripts (seccomp).

Allowed: computing, files open to the script, clocks. Refused: sockets, processes, threads, signals to others, named
shared memory and queues, file locks, tracing, mounts, keys, changes of file rights. Threads are an option for libraries
that need them. Standard library only.

Source: seccomp(2); numbers from the kernel's syscall_64.tbl and asm-generic/unistd.h.
"""

import ctypes
import errno
import functools
import os
import platform
import struct

from . import confine

# Column of _ALLOWED, and the architecture: EM_* with the bits for 64 bits and little-endian.
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
# First number beyond this list's kernel: libraries take "unknown" for an old kernel and use a fallback.
_NEWER = 450

# name, number on x86_64, number on aarch64 (- if none). The last row is for the child before its script: it receives
# its
# request and applies the file rules.
_ALLOWED = """
read 0 63            write 1 64           open 2 -             close 3 57           stat 4 -
fstat 5 80           lstat 6 -            poll 7 -             lseek 8 62           mmap 9 222
mprotect 10 226      munmap 11 215        brk 12 214           rt_sigaction 13 134  rt_sigprocmask 14 135
rt_sigreturn 15 139  ioctl 16 29          pread64 17 67        pwrite64 18 68       readv 19 65
writev 20 66         access 21 -          pipe 22 -            select 23 -          sched_yield 24 124
mremap 25 216        msync 26 227         mincore 27 232       madvise 28 233       dup 32 23
dup2 33 -            pause 34 -           nanosleep 35 101     getitimer 36 102     alarm 37 -
setitimer 38 103     getpid 39 172        exit 60 93           kill 62 129          uname 63 160
fcntl 72 25          fsync 74 82          fdatasync 75 83      ftruncate 77 46
getdents 78 -        getcwd 79 17         chdir 80 49          fchdir 81 50         rename 82 -
mkdir 83 -           rmdir 84 -           unlink 87 -          symlink 88 -         readlink 89 -
umask 95 166         gettimeofday 96 169  getrlimit 97 163     getrusage 98 165     sysinfo 99 179
times 100 153        getuid 102 174       getgid 104 176       geteuid 107 175      getegid 108 177
getppid 110 173      getpgrp 111 -        getgroups 115 158    sigaltstack 131 132  statfs 137 43
fstatfs 138 44       prctl 157 167        arch_prctl 158 -     gettid 186 178       time 201 -
futex 202 98         sched_getaffinity 204 123                 getdents64 217 61    set_tid_address 218 96
fadvise64 221 223    clock_gettime 228 113                     clock_getres 229 114
clock_nanosleep 230 115                   exit_group 231 94    tgkill 234 131       openat 257 56
mkdirat 258 34       newfstatat 262 79    unlinkat 263 35      renameat 264 38      symlinkat 266 36
readlinkat 267 78    faccessat 269 48     pselect6 270 72      ppoll 271 73         set_robust_list 273 99
fallocate 285 47     dup3 292 24          pipe2 293 59         preadv 295 69        pwritev 296 70
prlimit64 302 261    getcpu 309 168       renameat2 316 276    getrandom 318 278    statx 332 291
rseq 334 293         close_range 436 436  faccessat2 439 439
recvmsg 47 212       landlock_add_rule 445 445                 landlock_restrict_self 446 446
"""
_FOR_THREADS = """
clone 56 220         epoll_create1 291 20 epoll_ctl 233 21     epoll_wait 232 -     epoll_pwait 281 22
eventfd2 290 19
"""
# Flags of glibc and musl for a new thread; a new process uses others.
_THREAD_FLAGS = (0x003D0F00, 0x007D0F00)
# clone3 passes its flags in memory, invisible to a filter: "unknown" makes libraries use `clone`.
_CLONE3 = 435

_OPENING = os.O_ACCMODE | os.O_TRUNC
# Truncation is a write, even of a file opened for reading, which older Landlock ignores.
_OPEN_MODES = (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_RDWR | os.O_TRUNC)
_TCGETS, _FIONBIO, _FIOCLEX, _ANY_BIT = 0x5401, 0x5421, 0x5451, 0xFFFFFFFF
_PR_SET_NAME, _F_DUPFD_CLOEXEC = 15, 1030
# 5 to 7 are locks; from 8 on (F_SETOWN) a descriptor can signal any process.
_FCNTL = (*range(5), _F_DUPFD_CLOEXEC)

_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2


def restrict(*, threads: bool) -> None:
    """Limit this process permanently to the allowed calls; raise ConfineError if unsupported.

    Call after `confine.drop_privileges`; `threads` also allows new threads.
    """
    code = _program(platform.machine(), os.getpid(), threads=threads)
    held = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HP", len(code) // 8, ctypes.addressof(held))
    confine.libc_call("prctl", _PR_SET_SECCOMP, ctypes.c_ulong(_MODE_FILTER), program, 0, 0)


def _program(machine: str, me: int, *, threads: bool) -> bytes:
    if machine not in _MACHINES:
        raise confine.ConfineError(errno.ENOSYS, f"no list of kernel calls for {machine}")
    numbers, architecture = _numbers(machine, threads), _MACHINES[machine][1]
    # Argument index, relevant bits, and allowed values.
    conditions = {
        "open": (1, _OPENING, _OPEN_MODES),
        "openat": (2, _OPENING, _OPEN_MODES),
        "ioctl": (1, _ANY_BIT, (_TCGETS, _FIONBIO, _FIOCLEX)),
        "fcntl": (1, _ANY_BIT, _FCNTL),
        "prctl": (0, _ANY_BIT, (_PR_SET_NAME,)),
        "prlimit64": (0, _ANY_BIT, (0,)),
        "kill": (0, _ANY_BIT, (me,)),
        "tgkill": (0, _ANY_BIT, (me,)),
        "clone": (0, _ANY_BIT, _THREAD_FLAGS),
    }
    refuse, unknown = _REFUSE | errno.EPERM, _REFUSE | errno.ENOSYS
    steps = [(_LOAD, 0, 0, _MACHINE_AT), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, refuse)]
    steps.append((_LOAD, 0, 0, _NUMBER_AT))
    for name, (argument, bits, values) in conditions.items():
        if name in numbers:
            steps.append((_EQUAL, 0, len(values) + 4, numbers[name]))
            steps += [(_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument), (_AND, 0, 0, bits)]
            steps += [(_EQUAL, len(values) - at, 0, value) for at, value in enumerate(values)]
            steps += [(_RETURN, 0, 0, refuse), (_RETURN, 0, 0, _ALLOW)]
    steps += [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, unknown)]
    plain = [number for name, number in numbers.items() if name not in conditions]
    steps += [(_EQUAL, len(plain) - at + 2, 0, number) for at, number in enumerate(plain)]
    steps += [(_AT_LEAST, 1, 0, _NEWER), (_RETURN, 0, 0, refuse), (_RETURN, 0, 0, unknown), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("HBBI", *step) for step in steps)


@functools.cache
def _numbers(machine: str, threads: bool) -> dict[str, int]:
    fields = (_ALLOWED + _FOR_THREADS * threads).split()
    column = fields[1 + _MACHINES[machine][0] :: 3]
    return {name: int(number) for name, number in zip(fields[::3], column, strict=True) if number != "-"}
