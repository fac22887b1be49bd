# The command line in a container, as an ordinary user and without any tool to build with:
#
#     docker build -t finskillbench .
#     docker run --rm finskillbench doctor
#     docker run --rm --volume "$PWD:/work" --user "$(id -u)" finskillbench data build --seed 7 --out editions/seven
#
# The sandbox needs no privilege and no option: files are guarded by Landlock, calls of the kernel by a list of its own,
# the network by that list, since the container has no namespaces to give. Docker's own seccomp profile has to let
# Landlock through, as it does from version 23; `doctor` says what holds. An agent's code and scripts of others are
# refused where a guard is missing (SECURITY.md).
#
# --build-arg BASE=python@sha256:... holds the base to its bytes; the tag names one release of Python and of Debian.
ARG BASE=python:3.13.1-slim-bookworm

FROM ${BASE} AS build
WORKDIR /build
COPY requirements/run.txt requirements/run.txt
RUN python -m venv /opt/finskillbench
RUN /opt/finskillbench/bin/python -m pip install --quiet --no-cache-dir --disable-pip-version-check --no-deps --require-hashes -r requirements/run.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /opt/finskillbench/bin/python -m pip install --quiet --no-cache-dir --disable-pip-version-check --no-deps --no-index --no-build-isolation .
RUN /opt/finskillbench/bin/python -m pip check

FROM ${BASE}
COPY --from=build /opt/finskillbench /opt/finskillbench
RUN useradd --create-home --uid 10001 finskillbench && install --directory --owner finskillbench /work
ENV PATH=/opt/finskillbench/bin:$PATH
USER finskillbench
WORKDIR /work
ENTRYPOINT ["finskillbench"]
CMD ["--help"]
