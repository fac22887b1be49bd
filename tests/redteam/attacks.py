"""Forty-five ways out of the sandbox, and ten to the library from code that may not have it: each the body of a
function of `t`, true if it got anywhere.

`t` names the targets that `driver` has set up. Every attack is called twice in a row, so what one call leaves for the
next counts as well, and `driver` looks at its targets after each: what an attack has changed counts, whatever it says.
"""

PRELUDE = """
import collections, contextlib, ctypes, errno, fcntl, glob, gc, hashlib, os, platform, re, resource, signal, socket
import struct, sys, tempfile, threading, types
libc = ctypes.CDLL(None, use_errno=True)
ARM = platform.machine() == "aarch64"

def raw(x86, arm, *arguments):
    "A kernel call by its number; true if it was not refused."
    return libc.syscall(arm if ARM else x86, *map(ctypes.c_long, arguments)) >= 0

def readable(*paths):
    "Whether any of these can be opened and gives something."
    for path in paths:
        with contextlib.suppress(OSError), open(path, "rb") as file:
            if file.read(64):
                return path
    return ""

def works(function, *arguments):
    try:
        function(*arguments)
    except (OSError, ValueError, RuntimeError, AttributeError):
        return False
    return True

def plant(path):
    "Make a file there; it does not stay, since a library that this got at is a real one."
    open(path, "x").close()
    os.unlink(path)

def talks(family, kind, address, through=None):
    "Whether a message gets anywhere."
    try:
        with through or socket.socket(family, kind) as one:
            one.settimeout(0.3)
            if kind == socket.SOCK_DGRAM:
                return bool(one.sendto(b"x", address))
            one.connect(address)
            return bool(one.send(b"x"))
    except OSError:
        return False
"""

FILES = {
    "read the truth": "return readable(t['truth'])",
    "read it through a link in the scratch folder": "os.symlink(t['truth'], 'link'); return readable('link')",
    "import from the caller's current folder": (
        "sys.path.append(t['cwd']); import caller_module; return caller_module.SECRET"
    ),
    "read what lies beside modules of the search path": "return readable(t['beside'])",
    "overwrite it": "open(t['truth'], 'w').write('x'); return True",
    "truncate a file opened for reading": "os.close(os.open(t['library'], os.O_RDONLY | os.O_TRUNC)); return True",
    "change rights and times": "return works(os.chmod, t['truth'], 0o777) or works(os.utime, t['truth'], (1, 1))",
    "delete and rename": "return works(os.rename, t['truth'], t['truth'] + '.x') or works(os.unlink, t['truth'])",
    "hard link into the scratch folder": "os.link(t['truth'], 'hard'); return readable('hard')",
    "open by handle, past the folders": (
        "handle = ctypes.create_string_buffer(struct.pack('Ii', 128, 0), 136)\n"
        "named = libc.name_to_handle_at(-100, t['truth'].encode(), handle, ctypes.byref(ctypes.c_int()), 0) == 0\n"
        "return named and libc.open_by_handle_at(-100, handle, 0) >= 0"
    ),
    "watch the owner's folder": "return libc.inotify_add_watch(libc.inotify_init1(0), t['cwd'].encode(), 0xFFF) >= 0",
    "read the owner's entries in /proc": (
        "pids = (t['owner'], t['server'], t['victim'])\n"
        "return readable(*(f'/proc/{pid}/{name}' for pid in pids for name in ('environ', 'maps', 'cwd/truth.jsonl')),"
        " '/proc/self/environ', '/proc/self/maps', '/proc/self/root' + t['truth'])"
    ),
    "read keys in its own environment": (
        "return any('planted-key' in value for value in os.environ.values()) or libc.getenv(b'PLANTED_API_KEY')"
    ),
    "use descriptors that it inherited": (
        "found = []\n"
        "for fd in range(3, 4096):\n"
        "    with contextlib.suppress(OSError):\n"
        "        kind = os.fstat(fd).st_mode >> 12\n"
        "        if kind == 0o14 or (kind == 0o10 and b'owner' not in os.pread(fd, 1 << 20, 0)):\n"
        "            found.append(fd)\n"
        "return found"
    ),
    "plant a module in the libraries": (
        "folders = [*sys.path, os.path.dirname(os.__file__), t['package'], '/usr/local/lib', '..']\n"
        "return [folder for folder in folders if folder and works(plant, folder + '/planted.txt')]"
    ),
}

SHARED = {
    "read and write shared memory files": "return readable(t['shared']) or works(open, t['shared'], 'w')",
    "reach the owner's System V objects and message queues": (
        "return libc.shmget(t['key'], 0, 0) >= 0 or libc.msgget(t['key'], 0) >= 0 or libc.semget(t['key'], 0, 0) >= 0"
        " or libc.mq_open(b'/redteam', os.O_RDWR | os.O_CREAT, 0o666, None) >= 0"
    ),
    "leave System V memory for the next call": "return libc.shmget(t['key'] + 1, 4096, 0o1666) >= 0",
    "leave a file for the next call": (
        "name = f'left-{t[\"key\"]}'\n"
        "names = [f'{folder}/{name}' for folder in ('..', '/tmp', '/var/tmp', '/dev/shm', t['cwd'], t['package'])]\n"
        "return readable(name, *names) or works(open, name, 'w') and [name for name in names if works(plant, name)]"
    ),
    "leave something in the parent's modules": (
        "import json\nfound = getattr(json, 'left', 0)\njson.left = sys.left = 1\nreturn found"
    ),
    "leave a time of reading for the next call": (
        "before = os.stat(t['timed']).st_atime_ns\n"
        "open(t['timed'], 'rb').read()\n"
        "return os.stat(t['timed']).st_atime_ns != before"
    ),
    "leave a lock for another call": (
        "held = os.open(os.__file__, os.O_RDONLY)\n"
        "return works(fcntl.flock, held, fcntl.LOCK_SH) or works(fcntl.lockf, held, fcntl.LOCK_SH)"
    ),
    "find the code of another package in its callers": (
        "frame, own, seen, found = sys._getframe(), sys._getframe().f_code.co_filename, set(), []\n"
        "todo = collections.deque()\n"
        "while frame:\n"
        "    todo.extend(frame.f_locals.values()); frame = frame.f_back\n"
        "while todo and len(seen) < 300_000:\n"
        "    each = todo.popleft()\n"
        "    if id(each) in seen: continue\n"
        "    seen.add(id(each))\n"
        "    if isinstance(each, types.CodeType) and t['package'] in each.co_filename != own:\n"
        "        found.append(each.co_filename)\n"
        "    if isinstance(each, bytes) and b'hol' + b'der' in each: found.append('a text')\n"
        "    todo.extend(gc.get_referents(each))\n"
        "return found"
    ),
    "find the payload of another call in its memory": (
        "pattern = re.compile(rb'HOLDER-[0-9a-f]{32}')\n"
        "into, out = os.pipe()\n"
        "libc.sbrk.restype = ctypes.c_void_p\n"
        "page, seen, hits = 4096, set(), []\n"
        "def scan(start, stop, step):\n"
        "    misses, address = 0, start\n"
        "    while address != stop and misses < 2048:\n"
        "        if address in seen: return\n"
        "        seen.add(address)\n"
        "        if libc.write(out, ctypes.c_void_p(address), 1) == 1:\n"
        "            os.read(into, 1); misses = 0\n"
        "            hits.extend(pattern.findall(ctypes.string_at(address, page)))\n"
        "        else: misses += 1\n"
        "        address += step * page\n"
        "starts = {(libc.sbrk(0) or 0) & -page, *(id(each) & -page for each in gc.get_objects()[::50])}\n"
        "for start in starts:\n"
        "    scan(start, start - (1 << 26), -1); scan(start + page, start + (1 << 24), 1)\n"
        "return [1 for hit in hits if hashlib.sha256(hit).hexdigest() == t['digest']]"
    ),
}

NETWORK = {
    "connect to a Unix socket": "return talks(socket.AF_UNIX, socket.SOCK_STREAM, t['socket'])",
    "connect to an abstract one": "return talks(socket.AF_UNIX, socket.SOCK_STREAM, t['abstract'])",
    "send from one end of a socket pair": (
        "pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
        "return talks(None, socket.SOCK_DGRAM, t['datagram'], pair[0])"
    ),
    "connect by TCP": "return talks(socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', t['port']))",
    "send by UDP": "return talks(socket.AF_INET, socket.SOCK_DGRAM, ('127.0.0.1', t['udp']))",
    "open raw, netlink, packet, VM and crypto sockets": (
        "kinds = [(2, 3, 1), (16, 3, 0), (17, 3, 768), (40, 1, 0), (38, 5, 0)]\n"
        "return [kind for kind in kinds if libc.socket(*kind) >= 0]"
    ),
    "set up io_uring": "return raw(425, 425, 1, ctypes.addressof(ctypes.create_string_buffer(120)))",
}

PROCESSES = {
    "fork": "pid = os.fork()\nif pid == 0: os._exit(0)\nreturn True",
    "start a thread": "threading.Thread(target=print).start(); return True",
    "become another program": "os.execv('/bin/sh', ['sh', '-c', 'exit 77'])",
    "signal the owner, the server, others": (
        "return [pid for pid in (t['owner'], t['server'], t['victim'], t['other']) if works(os.kill, pid, 0)]"
    ),
    "signal through a descriptor's owner": "fcntl.fcntl(os.pipe()[0], 8, t['victim']); return True",
    "trace": (
        "pids = (t['owner'], t['server'], t['victim'], t['other'])\n"
        "return [pid for pid in pids if libc.ptrace(0x4206, pid, 0, 0) == 0]"
    ),
    "read the memory of others": (
        "buffer = ctypes.create_string_buffer(8)\n"
        "vector = ctypes.create_string_buffer(struct.pack('4Q', ctypes.addressof(buffer), 8, id(None), 8))\n"
        "at, pids = ctypes.addressof(vector), (t['owner'], t['server'], t['other'])\n"
        "read = [pid for pid in pids if raw(310, 270, pid, at, 1, at + 16, 1, 0)]\n"
        "return read or [pid for pid in pids if works(open, f'/proc/{pid}/mem', 'rb')]"
    ),
    "take a descriptor of another": (
        "pids = (t['owner'], t['server'], t['victim'])\n"
        "fds = [fd for pid in pids if (fd := libc.syscall(434, pid, 0)) >= 0]\n"
        "return [fd for fd in fds if raw(438, 438, fd, 0, 0) or raw(424, 424, fd, 0, 0, 0)]"
    ),
    "change limits of others or raise its own": (
        "lower = lambda pid: resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))\n"
        "mine = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "pids = (t['owner'], t['server'], t['victim'])\n"
        "raised = works(resource.setrlimit, resource.RLIMIT_NOFILE, (mine * 2, mine * 2))\n"
        "return [pid for pid in pids if works(lower, pid)] or raised"
    ),
    "hold up the owner's scheduling": (
        "return [pid for pid in (t['owner'], t['server'], t['victim'])"
        " if works(os.sched_setaffinity, pid, {0}) or works(os.setpriority, os.PRIO_PROCESS, pid, 19)]"
    ),
}

KERNEL = {
    "become the superuser, enter namespaces, mount": (
        "return os.getuid() and works(os.setuid, 0) or libc.unshare(0x10000000) == 0 or libc.unshare(0x20000) == 0"
        " or libc.mount(b'none', b'/tmp', b'tmpfs', 0, None) == 0 or works(os.chroot, '.') or raw(155, 41, 0, 0)"
    ),
    "type into the terminal": (
        "return [fd for fd in range(16) if works(fcntl.ioctl, fd, 0x5412, b'x')] or works(open, '/dev/tty')"
    ),
    "keep or read keys in the kernel": (
        "text = ctypes.create_string_buffer(b'user'); at = ctypes.addressof(text)\n"
        "return raw(248, 217, at, at, at, 4, -3) or raw(250, 219, 0, -3, 1)"
    ),
    "use bpf, perf, userfaultfd, kcmp": (
        "room = ctypes.create_string_buffer(struct.pack('IIQQ', 1, 128, 0, 0), 128); at = ctypes.addressof(room)\n"
        "return raw(321, 280, 0, at, 120) or raw(298, 241, at, 0, -1, -1, 0) or raw(323, 282, 1)"
        " or raw(312, 272, os.getpid(), t['victim'], 0, 0, 0)"
    ),
}

ATTACKS = {**FILES, **SHARED, **NETWORK, **PROCESSES, **KERNEL}

LIBRARY = {
    "import it": "import finskillbench; return True",
    "import an engine": "import importlib; return importlib.import_module('finskillbench.engines.fields')",
    "import by the search path": (
        "import importlib\n"
        "sys.path[:0] = [os.path.dirname(t['library_folder']), t['library_folder']]\n"
        "sys.path_importer_cache.clear(); importlib.invalidate_caches()\n"
        "with contextlib.suppress(ImportError): return importlib.import_module('engines.fields')\n"
        "return importlib.import_module('finskillbench.engines.fields')"
    ),
    "import through a link in the working folder": (
        "os.symlink(t['library_folder'], 'finskillbench')\nimport finskillbench.engines.fields; return True"
    ),
    "load a module by its path": (
        "import importlib.util\n"
        "spec = importlib.util.spec_from_file_location('found', t['library_folder'] + '/engines/fields.py')\n"
        "module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module); return module.__doc__"
    ),
    "run a file by its path": "import runpy; return runpy.run_path(t['library_folder'] + '/engines/fields.py')",
    "read sources and byte code": (
        "return readable(*glob.glob(t['library_folder'] + '/**/*.py*', recursive=True),"
        " t['library_folder'] + '/engines/fields.py', t['library_folder'] + '/sandbox/child.py',"
        " t['library_folder'] + f'/engines/__pycache__/fields.{sys.implementation.cache_tag}.pyc')"
    ),
    "ask the installer's records": (
        "import importlib.metadata\n"
        "sys.path.append(t['installed'])\n"
        "with contextlib.suppress(importlib.metadata.PackageNotFoundError):\n"
        "    return importlib.metadata.distribution('finskillbench').read_text('RECORD')"
    ),
    "find its modules in memory": (
        "seen, pending = set(), [sys.modules, sys._getframe(), *gc.get_objects()]\n"
        "while pending:\n"
        "    each = pending.pop()\n"
        "    if id(each) in seen: continue\n"
        "    seen.add(id(each))\n"
        "    if isinstance(each, type(sys)) and each.__name__.startswith('finskillbench'): return each.__name__\n"
        "    if str(getattr(each, '__module__', '')).startswith('finskillbench'): return repr(each)\n"
        "    pending += gc.get_referents(each)\n"
    ),
    "find its folder on the search path": (
        "return [name for name in sys.path if name and os.path.exists(name + '/finskillbench/__init__.py')]"
        " or [each for each in sys.meta_path if 'finskillbench' in repr(each)]"
    ),
}
"""What reaches the library where code has it, and may not where it has not."""
