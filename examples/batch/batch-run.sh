#!/bin/sh
# Runs the batch of a lambda job and waits for its end; for cron and anything else that runs a command. docs/lambda.md explains it.
#
#   batch-run.sh JOB [LOG]
#
# It prints nothing when all is well, so that cron sends no mail. LOG gets a line of JSON for each run. Leave batch.schedule out of the
# job file, or the job runs by both. Two runs of a job never overlap: the second ends at once.
set -u
job=$1
log=${2:-/dev/null}
errors=$(mktemp) || exit 1
trap 'rm -f "$errors"' EXIT

kappactl batch run "$job" --wait --timeout 6h --wait-agent 10m -o jsonl >>"$log" 2>"$errors"
code=$?
case $code in
0) exit 0 ;;
6) reason="skipped: another run is under way, or the job has no live version of mode lambda" ;;
4) reason="not done after 6 hours; the run goes on" ;;
5) reason="more keys changed than batch.max_changed allows, or a check failed: readers keep the old results" ;;
7) reason="records are missing from the archive and the topic: readers keep the old results" ;;
11) reason="no agent, database or broker: nothing was asked for" ;;
*) reason="failed: readers keep the old results" ;;
esac
echo "batch run of $job: $reason (exit code $code)" >&2
cat "$errors" >&2
exit "$code"
