#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests and counts them: test.sh [PART...]   parts: unit go contract packet system instructions fuzz sanitize, and
# lint, which is not a test and runs only when it is named
#
# Each part leaves its runner's own report in build/test-results/; tools/test_report.py turns them into the table at the
# end. A part fails when its runner fails, whatever was counted.
set -u
cd "$(dirname "$0")/.." || exit
# shellcheck source=tools/owner.sh
. tools/owner.sh
# shellcheck source=tools/ccache.sh
. tools/ccache.sh

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

# All processes of this run have it in their environment: if it is killed, the next run ends them.
CORELANE_TEST_RUN=$(tools/left_over.py --id $$)
export CORELANE_TEST_RUN

# Of the processes that have ended; what is built ahead counts in the part that ends it.
cpu_seconds() { awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print int(($14 + $15) / hz) }' /proc/$$/stat; }

step() { echo "==> $* (after $SECONDS s)"; }

# Tests and packages in what changed since the last green run run first.
CORELANE_CHANGED=$(tools/green.sh changed)
export CORELANE_CHANGED

changed_first() { # MODULE; reads packages
  awk -v changed="$CORELANE_CHANGED" -v module="$1" '
    BEGIN { for (i = split(changed, files, "\n"); i > 0; i--) { sub("/[^/]*$", "", files[i]); first[module "/" files[i]] } }
    $0 in first { print; next }
    { rest = rest $0 "\n" }
    END { printf "%s", rest }'
}

run_unit() { # BUILDDIR
  meson test -C "$1" --suite unit --no-stdsplit --print-errorlogs
  local status=$?
  cp "$1/meson-logs/testlog.junit.xml" "$results/$part.xml"
  cp "$1/meson-logs/testlog.json" "$results/$part.meson.json"
  [ $status = 0 ] || second_try meson "$results/$part.meson.json" \
    meson test -C "$1" --num-processes 1 --no-stdsplit --print-errorlogs
}

# The JSON goes to the report; the terminal gets a line per package and the output of what failed.
# Without -count=1, go hashes all the files that tests have read, for its cache: a minute for internal/cores.
go_test() { # "[FLAG...]" PACKAGES...
  local report packages
  report=$results/$part.$((go_tests += 1)).go.json
  packages=$(tools/go.sh list "${@:2}" | wc -l)
  # shellcheck disable=SC2086 # flags without blanks
  tools/go.sh test -count=1 -json $1 "${@:2}" | tee "$report" | /usr/bin/python3 tools/test_report.py --go-progress "$packages"
  # shellcheck disable=SC2086
  [ "${PIPESTATUS[0]}" = 0 ] || second_try go "$report" tools/go.sh test -count=1 $1
}
go_tests=0

# Packages whose code starts goroutines or takes locks (sync.Once is none of these) run with the race detector, which makes
# tests five times slower. Not internal/bgp: GoBGP 4.8 itself reads a path's stale flag without the lock under which it is
# written (table/path.go), and two of its servers in one process share variables. Nor internal/bench/fleet, which runs it.
run_go() {
  local module package status=0 plain=() concurrent=() alone=()
  module=$(tools/go.sh list -m)
  while read -r package; do
    if [ "$package" != "$module/internal/bgp" ] && [ "$package" != "$module/internal/bench/fleet" ] && find ".${package#"$module"}" -maxdepth 1 -name '*.go' ! -name '*_test.go' \
      -exec grep -qE '^[[:space:]]+go [[:alpha:]]|[^[:alpha:]]sync\.([^O]|$)' {} +; then
      # Benchmarks want all hugepages, and both CPUs.
      if [[ $package == "$module"/internal/bench/* ]]; then alone+=("$package"); else concurrent+=("$package"); fi
    else
      plain+=("$package")
    fi
  done < <(tools/go.sh list ./... | grep -v '/tests/' | changed_first "$module")
  tools/go-build.sh -race "${concurrent[@]}" "${alone[@]}" || return 1
  go_test "-race -p 1" "${alone[@]}" || status=1
  go_test "-race -p 2" "${concurrent[@]}" || status=1
  go_test "" "${plain[@]}" || status=1
  go_test "-tags=scale -run=Million" ./internal/state || status=1
  return $status
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
  local report=$results/$part${2:-}.xml pytest=(/usr/bin/python3 -m pytest -q -p no:cacheprovider -o console_output_style=count)
  # shellcheck disable=SC2086 # paths without blanks
  "${pytest[@]}" --durations=10 --durations-min=5 --junitxml="$report" "${@:3}" $1 || second_try pytest "$report" "${pytest[@]}"
}

# Packet tests are two processes, each with a router of its own; a router waits most of the time.
by_two=(-n 2 --dist loadfile)

# Once with few rights and filtered system calls; once as root, what concerns workers. Routed tenant ports keep no flows
# here; they do in the sanitized run.
run_packet() {
  local status=0
  ahead_cpus 3
  CORELANED_OPTIONS="--user nobody" run_pytest tests/packet "" "${by_two[@]}" "${workers_apart[@]/#/--ignore=}" || status=1
  ahead_cpus 1
  run_pytest "${workers_apart[*]}" .workers "${by_two[@]}" || status=1
  return $status
}

# What judges or changes the CPUs of the whole machine, or counts what an outage costs, runs alone; the other files beside
# each other, because most of their time passes while they wait for timers of BGP and of guests.
system_alone=(tests/system/test_{cores,guard,noisy_port,restart,service,threads,watchdog}.py)

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
  local script status=0 cases='' n=0 scripts
  ahead_cpus 3
  run_pytest tests/system "" -n 3 --dist loadfile "${system_alone[@]/#/--ignore=}" || status=1
  ahead_cpus 1
  run_pytest "${system_alone[*]}" .alone || status=1
  mapfile -t scripts < <(find tests/system -name '*_test.sh' -executable | sort)
  for script in "${scripts[@]}"; do
    step "system: $(basename "$script"), $((n += 1)) of ${#scripts[@]}"
    script_case "$script" "$results/script.last" || script_case "$script" "$results/script.last" again || status=1
    cases+=$(<"$results/script.last")
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

# Fuzz targets and the sanitized programs share a build: half of the time of both was compiling. One whose configuration
# was interrupted is made anew.
build_asan() { # [TARGET...]
  [ -e build-asan/build.ninja ] || rm -rf build-asan
  [ -d build-asan ] || CC=$CLANG meson setup build-asan -Dfuzz=true -Doptimization=1 -Ddebug=true \
    -Db_sanitize=address,undefined -Db_lundef=false -Dc_args=-fno-sanitize=alignment >/dev/null || return 1
  ninja -C build-asan "$@"
}

build_tsan() {
  [ -e build-tsan/build.ninja ] || rm -rf build-tsan
  [ -d build-tsan ] || CC=$CLANG meson setup build-tsan -Doptimization=1 -Ddebug=true -Db_sanitize=thread \
    -Db_lundef=false "-Dc_args=-DRTE_FORCE_INTRINSICS -DRTE_USE_C11_MEM_MODEL" >/dev/null || return 1
  ninja -C build-tsan "${racing[@]/#/dataplane/}"
}

# What is instrumented is compiled, and what lint takes minutes for is looked at, while other parts run, in the time that
# these leave of CPU 0: most of them wait for packets, and workers are on other CPUs. Tests whose workers sleep leave time
# of CPU 1, too. An error comes again, and is seen, in the part that needs the results.
ahead=
build_ahead() {
  [ -z "$ahead" ] && [[ " ${parts[*]} " =~ \ (fuzz|sanitize|lint)\  ]] || return 0
  set -m # a process group of its own
  (
    chrt --idle --pid 0 "$BASHPID"
    taskset --pid 1 "$BASHPID"
    build_asan all fuzz-targets test-programs && build_tsan
    [[ " ${parts[*]} " != *" lint "* ]] || tools/lint.sh --slow
  ) &>"$results/ahead.log" &
  ahead=$!
  set +m
}

ahead_cpus() { # MASK
  [ -z "$ahead" ] || pgrep -g "$ahead" | xargs -rn 1 taskset --all-tasks --pid "$1" >/dev/null 2>&1
}

end_ahead() {
  [ -n "$ahead" ] || return
  kill -- "-$ahead" && wait "$ahead"
  ahead=
} 2>/dev/null
trap end_ahead EXIT

run_lint() {
  local status=0 result=
  end_ahead
  tools/lint.sh || { status=1 && result="<failure message='see above'/>"; }
  echo "<testsuite><testcase classname='lint' name='the linters find nothing'>$result</testcase></testsuite>" >"$results/lint.xml"
  return $status
}

# One target; what it says stays together, because another one runs beside it.
fuzz_target() { # PROGRAM "N of M"
  local name log status=0
  name=$(basename "$1")
  log=$results/$name.log
  mkdir -p "build-asan/corpus/$name" "tests/fuzz/corpus/${name#fuzz_}"
  "$1" -max_total_time="$fuzz_seconds" -timeout=10 -rss_limit_mb=4096 -artifact_prefix="build-asan/$name-" \
    "build-asan/corpus/$name" "tests/fuzz/corpus/${name#fuzz_}" >"$log" 2>&1 || status=1
  echo "fuzz: $name, $2, for $fuzz_seconds s: $(tail -n $((status ? 40 : 1)) "$log")"
  fuzz_case "$name" $status >"$results/$name.case"
}

fuzz_case() { # NAME STATUS
  echo -n "<testcase classname='fuzz' name='$1'>"
  [ "$2" = 0 ] || echo -n "<failure message='see the log'/>"
  echo "</testcase>"
}

run_fuzz() {
  local target targets status=0 n=0
  end_ahead
  export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
  build_asan fuzz-targets || return 1
  mapfile -t targets < <(find build-asan/tests/fuzz -maxdepth 1 -name 'fuzz_*' -type f -executable | sort)
  for target in "${targets[@]}"; do
    [ "$(jobs -rp | wc -l)" -lt 2 ] || wait -n
    n=$((n + 1)) # here, because a job has its own
    fuzz_target "$target" "$n of ${#targets[@]}" &
  done
  wait
  step "fuzz: bugs that are planted are found"
  tools/fuzz.py plant || status=1
  fuzz_case "planted bugs are found" $status >"$results/planted.case"
  echo "<testsuite>$(cat "$results"/*.case)</testsuite>" >"$results/fuzz.xml"
  grep -q "name='fuzz_" "$results/fuzz.xml" || { echo "no fuzz target was built" && return 1; }
  ! grep -q "<failure" "$results/fuzz.xml"
}

run_sanitize() (
  end_ahead
  build_asan || return 1
  # Leaks are looked for by the soak: DPDK itself keeps memory until the process ends.
  export ASAN_OPTIONS=abort_on_error=1:detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
  export CORELANED=$PWD/build-asan/dataplane/corelaned
  status=0
  run_unit build-asan || status=1
  if [ -d tests/packet ]; then
    # Stateful: more of the code than without. What workers do beside each other is handover_test's, which has just run.
    # How soon a slowed worker has emptied its old ring is no question here: one packet takes longer than a walk may, so
    # that it takes one packet a loop.
    CORELANE_STATEFUL=1 run_pytest tests/packet .packets "${by_two[@]}" "${workers_apart[@]/#/--ignore=}" \
      "${timed[@]/#/--ignore=}" --ignore=tests/packet/test_buffers.py || status=1
  fi
  run_races || status=1
  return $status
)

# What threads write at once: the flow table, rings between workers, RCU, punting, meters, ports and workers that change
# under load, routes, MACs and rules that change while they are looked up, memif peers that come and go. DPDK's own code is
# not instrumented; its inline functions are, with locks and rings of the compiler's atomics.
run_races() {
  local status=0 name result cases='' n=0
  build_tsan || return 1
  for name in "${racing[@]}"; do
    result=
    step "races: $name, $((n += 1)) of ${#racing[@]}"
    TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/tests/tsan.txt" build-tsan/dataplane/"$name" ||
      { status=1 && result="<failure message='see above'/>"; }
    cases+="<testcase classname='races' name='$name'>$result</testcase>"
  done
  echo "<testsuite>$cases</testsuite>" >"$results/sanitize.races.xml"
  return $status
}
racing=(flow_table_stress_test handover_test worker_test punt_test meter_test fib_test mac_test rules_many_test rules_port_test
  memif_churn_test)

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
done_parts=0
for part in "${parts[@]}"; do
  if ! exists "$part"; then
    echo "$part 1 0 0" >>"$results/parts"
    echo "tests/$part is missing" >&2
    continue
  fi
  step "test: $part, part $((done_parts += 1)) of ${#parts[@]}"
  start=$SECONDS used=$(cpu_seconds)
  case $part in
    unit) run_unit build ;;
    go | packet | system) build_ahead && "run_$part" ;;
    *) "run_$part" ;;
  esac
  echo "$part $? $((SECONDS - start)) $(($(cpu_seconds) - used))" >>"$results/parts"
  step "test: $part took $((SECONDS - start)) s"
done

end_ahead
tools/left_over.py --at-end
/usr/bin/python3 tools/flaky.py --record "$results"
/usr/bin/python3 tools/test_report.py "$results" || exit
[[ " ${parts[*]} " != *" system "*" sanitize "* ]] || tools/green.sh note
