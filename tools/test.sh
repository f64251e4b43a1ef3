#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests and counts them: test.sh [PART...]   parts: unit go contract packet system instructions fuzz sanitize
#
# Each part leaves its runner's own report in build/test-results/; tools/test_report.py turns them into the table at the
# end. A part fails when its runner fails, whatever was counted.
set -u
cd "$(dirname "$0")/.." || exit
# shellcheck source=tools/owner.sh
. tools/owner.sh

parts=("$@")
[ ${#parts[@]} != 0 ] || parts=(unit go contract packet system instructions fuzz sanitize)
results=$PWD/build/test-results
fuzz_seconds=${FUZZ_SECONDS:-4}
export PYTHONDONTWRITEBYTECODE=1
export CORELANED=$PWD/bin/corelaned CORELANE=$PWD/bin/corelane

# What fails runs once more, alone: a test that depends on luck is told from one that is broken, and named in the table.
second_try() { # KIND REPORT COMMAND...
  /usr/bin/python3 tools/second_try.py "$@"
}

step() { echo "==> $*"; }

run_unit() { # BUILDDIR
  meson test -C "$1" --suite unit --no-stdsplit --print-errorlogs
  local status=$?
  cp "$1/meson-logs/testlog.junit.xml" "$results/$part.xml"
  cp "$1/meson-logs/testlog.json" "$results/$part.meson.json"
  [ $status = 0 ] || second_try meson "$results/$part.meson.json" \
    meson test -C "$1" --num-processes 1 --no-stdsplit --print-errorlogs
}

# The JSON goes to the report; the terminal gets a line per package and the output of what failed.
go_test() { # ["FLAG..."] PACKAGES...
  local report
  report=$results/$part.$((go_tests += 1)).go.json
  # shellcheck disable=SC2086 # flags without blanks
  tools/go.sh test -json $1 "${@:2}" | tee "$report" | /usr/bin/python3 tools/test_report.py --go-progress
  # shellcheck disable=SC2086
  [ "${PIPESTATUS[0]}" = 0 ] || second_try go "$report" tools/go.sh test -count=1 $1
}
go_tests=0

run_go() {
  local packages
  mapfile -t packages < <(tools/go.sh list ./... | grep -v '/tests/')
  tools/go-build.sh -race ./... && tools/go.sh vet ./... && go_test -race "${packages[@]}" &&
    go_test "-tags=scale -run=Million" ./internal/state
}

# The generated code, and both sides of the API against each other.
run_contract() {
  local status=0
  if tools/api.sh --check; then
    echo '<testsuite><testcase classname="contract" name="generated code is current"/></testsuite>' >"$results/contract.xml"
  else
    status=1
  fi
  tools/bpf.sh --check || status=1
  go_test "" ./tests/api/... || status=1
  return $status
}

workers_apart=(tests/packet/test_worker.py tests/packet/test_workers.py)
# These measure how long something takes; a sanitized build is several times slower.
timed=(tests/packet/test_{master,punt,meter,interrupt}.py)

run_pytest() { # "PATH..." [SUITE [ARGUMENT...]]
  local report=$results/$part${2:-}.xml pytest=(/usr/bin/python3 -m pytest -q -p no:cacheprovider)
  # shellcheck disable=SC2086 # paths without blanks
  "${pytest[@]}" --junitxml="$report" "${@:3}" $1 || second_try pytest "$report" "${pytest[@]}"
}

# Once with few rights and filtered system calls; once as root, what concerns workers. Routed tenant ports keep no flows
# here; they do in the sanitized run.
run_packet() {
  local status=0
  CORELANED_OPTIONS="--user nobody" run_pytest tests/packet "" "${workers_apart[@]/#/--ignore=}" || status=1
  run_pytest "${workers_apart[*]}" .workers || status=1
  return $status
}

# Runs a script and writes its case for the report. A second run that passes is noted as such.
script_case() { # SCRIPT FILE [again]
  local name rc last result=
  name=$(basename "$1")
  timeout 300 "$1" 2>&1 | tee "$results/script.log"
  rc=${PIPESTATUS[0]}
  last=$(tail -1 "$results/script.log" | tr -d '<>&"' | cut -c1-200)
  case $rc in
    0) [ -z "${3:-}" ] || printf 'system\t%s\n' "$name" >>"$results/second-tries" ;;
    77) result="<skipped message=\"$last\"/>" ;;
    *) result="<failure message=\"exit $rc: $last\"/>" ;;
  esac
  echo "<testcase classname='system' name='$name'>$result</testcase>" >"$2"
  [ "$rc" = 0 ] || [ "$rc" = 77 ]
}

# System tests are pytest files and scripts named *_test.sh; a script skips with exit 77 and its last line as the reason.
run_system() {
  local script status=0 cases=
  if compgen -G 'tests/system/test_*.py' >/dev/null || compgen -G 'tests/system/*_test.py' >/dev/null; then
    run_pytest tests/system || status=1
  fi
  for script in tests/system/*_test.sh; do
    [ -x "$script" ] || continue
    step "system: $(basename "$script")"
    script_case "$script" "$results/script.case" || script_case "$script" "$results/script.case" again || status=1
    cases+=$(<"$results/script.case")
  done
  [ -z "$cases" ] || echo "<testsuite>$cases</testsuite>" >"$results/system.scripts.xml"
  return $status
}

# No node may have become longer; another compiler than the baseline's counts otherwise.
run_instructions() {
  local status=0 case
  ninja -C build bench-programs || return 1
  tests/perf/instructions.sh | tee "$results/instructions.log"
  [ "${PIPESTATUS[0]}" = 0 ] || status=1
  case="<testcase classname='instructions' name='nodes are not longer than the baseline'"
  if [ $status != 0 ]; then
    case+="><failure message='see $results/instructions.log'/></testcase>"
  elif grep -q 'shown, not compared' "$results/instructions.log"; then
    case+="><skipped message='the baseline in tests/perf/instructions.txt is of another compiler'/></testcase>"
  else
    case+="/>"
  fi
  echo "<testsuite>$case</testsuite>" >"$results/instructions.xml"
  return $status
}

# Fuzz targets and the sanitized programs share a build: half of the time of both was compiling.
set_up_asan() {
  [ -d build-asan ] || CC=clang meson setup build-asan -Dfuzz=true -Doptimization=1 -Ddebug=true \
    -Db_sanitize=address,undefined -Db_lundef=false -Dc_args=-fno-sanitize=alignment >/dev/null
}

run_fuzz() {
  local target name cases='' status=0
  export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
  set_up_asan && ninja -C build-asan fuzz-targets || return 1
  for target in build-asan/tests/fuzz/fuzz_*; do
    [ -f "$target" ] && [ -x "$target" ] || continue
    name=$(basename "$target")
    step "fuzz: $name for $fuzz_seconds s"
    mkdir -p "build-asan/corpus/$name" "tests/fuzz/corpus/${name#fuzz_}"
    if "$target" -max_total_time="$fuzz_seconds" -timeout=10 -rss_limit_mb=4096 -artifact_prefix="build-asan/$name-" \
      "build-asan/corpus/$name" "tests/fuzz/corpus/${name#fuzz_}" >"$results/$name.log" 2>&1; then
      tail -1 "$results/$name.log"
      cases+="<testcase classname='fuzz' name='$name'/>"
    else
      tail -40 "$results/$name.log"
      cases+="<testcase classname='fuzz' name='$name'><failure message='see $results/$name.log'/></testcase>"
      status=1
    fi
  done
  [ -n "$cases" ] || { echo "no fuzz target was built" && return 1; }
  step "fuzz: bugs that are planted are found"
  if tools/fuzz.py plant; then
    cases+="<testcase classname='fuzz' name='planted bugs are found'/>"
  else
    cases+="<testcase classname='fuzz' name='planted bugs are found'><failure message='see the log'/></testcase>"
    status=1
  fi
  echo "<testsuite>$cases</testsuite>" >"$results/fuzz.xml"
  return $status
}

run_sanitize() (
  set_up_asan && ninja -C build-asan || return 1
  # Leaks are looked for by the soak: DPDK itself keeps memory until the process ends.
  export ASAN_OPTIONS=abort_on_error=1:detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
  export CORELANED=$PWD/build-asan/dataplane/corelaned
  status=0
  run_unit build-asan || status=1
  if [ -d tests/packet ]; then
    # Stateful: more of the code than without. What workers do beside each other is handover_test's, which has just run.
    CORELANE_STATEFUL=1 run_pytest tests/packet .packets "${workers_apart[@]/#/--ignore=}" "${timed[@]/#/--ignore=}" || status=1
  fi
  run_races || status=1
  return $status
)

# What threads write at once: the flow table, rings between workers, RCU, punting, ports and workers that change under
# load. DPDK's own code is not instrumented; its inline functions are, with locks and rings of the compiler's atomics.
run_races() {
  local status=0 name result cases=
  [ -d build-tsan ] || CC=clang meson setup build-tsan -Doptimization=1 -Ddebug=true -Db_sanitize=thread -Db_lundef=false \
    "-Dc_args=-DRTE_FORCE_INTRINSICS -DRTE_USE_C11_MEM_MODEL" >/dev/null || return 1
  ninja -C build-tsan "${racing[@]/#/dataplane/}" || return 1
  for name in "${racing[@]}"; do
    result=
    step "races: $name"
    TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/tests/tsan.txt" build-tsan/dataplane/"$name" ||
      { status=1 && result="<failure message='see above'/>"; }
    cases+="<testcase classname='races' name='$name'>$result</testcase>"
  done
  echo "<testsuite>$cases</testsuite>" >"$results/sanitize.races.xml"
  return $status
}
racing=(flow_table_stress_test handover_test worker_test punt_test)

exists() { # does the repository have this part?
  case $1 in
    packet) [ -d tests/packet ] ;;
    system) [ -d tests/system ] ;;
    fuzz) [ -d tests/fuzz ] ;;
    *) true ;;
  esac
}

rm -rf "$results"
mkdir -p "$results"
ninja -C build test-programs || exit
for part in "${parts[@]}"; do
  if ! exists "$part"; then
    echo "$part 1 0" >>"$results/parts"
    echo "tests/$part is missing" >&2
    continue
  fi
  step "test: $part"
  start=$SECONDS
  if [ "$part" = unit ]; then run_unit build; else "run_$part"; fi
  echo "$part $? $((SECONDS - start))" >>"$results/parts"
done

/usr/bin/python3 tools/flaky.py --record "$results"
/usr/bin/python3 tools/test_report.py "$results"
