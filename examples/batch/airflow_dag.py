"""Runs the batch of a lambda job from Airflow 3. docs/lambda.md explains it.

kappactl must be on the workers' PATH, with KAPPACTL_DSN in their environment; an agent (kappactl serve) does the work. Leave
batch.schedule out of the job file, or the job runs by both.
"""

import json
import subprocess

import pendulum
from airflow.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from airflow.sdk import dag, task

JOB = "flights"
COMMAND = ["kappactl", "batch", "run", JOB, "--wait", "--timeout", "6h", "--wait-agent", "10m", "-o", "json"]

UNDER_WAY = 6  # another run is under way, or the job has no live version of mode lambda
AGAIN = (1, 4, 11)  # may go better: failed, timed out, or no agent, database or broker


@dag(
    schedule="30 2 * * *",
    start_date=pendulum.datetime(2026, 1, 1, tz="Europe/Berlin"),
    catchup=False,  # a run covers all that has arrived: earlier ones add nothing
    max_active_runs=1,
)
def flights_batch():
    # A worker that dies leaves the run to the agents. The retry then finds it under way and is skipped.
    @task(retries=3, retry_delay=pendulum.duration(minutes=10))
    def batch_run() -> dict:
        run = subprocess.run(COMMAND, capture_output=True, text=True, check=False)
        if run.returncode == 0:
            return json.loads(run.stdout)
        if run.returncode == UNDER_WAY:
            raise AirflowSkipException(run.stderr)
        if run.returncode in AGAIN:
            raise AirflowException(run.stderr)
        raise AirflowFailException(run.stderr)  # 5, 7 and others: a person has to look, readers keep the old results

    batch_run()


flights_batch()
