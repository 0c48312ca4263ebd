package job_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

const plainJob = `job: clicks
source: {topics: [clicks], columns: {page: text}}
query: SELECT page, count(*) AS n FROM source GROUP BY page
serve: {view: clicks}
`

func TestExperimentsOfJobFiles(t *testing.T) {
	e := parse(t, plainJob+`experiment:
  mode: bandit
  subject: user_id
  reward: {kind: gaussian, direction: down, clip: [-1.5, 100], source: {kafka: rewards}, window: 30m}
  guardrails:
    - {name: errors, kind: threshold, sql: "SELECT 'v2' AS arm, 1 AS n, 0.5 AS value", limit: -0.5}
  decide: {loss_max: 0.001, min_runtime: 0s}
  policy: {gamma: 0.9}
  promote: auto
`).Experiment
	r := e.Reward
	switch {
	case e.By() != job.ABBandit || e.Assign != job.AssignSticky || e.Promote != job.PromoteAuto:
		t.Errorf("%+v", e)
	case r.Direction != job.Down || *r.Clip != [2]float64{-1.5, 100} || r.Window != 30*time.Minute || r.Grace != 5*time.Minute:
		t.Errorf("%+v", r)
	case r.Source.Name() != "kafka" || *r.Source.Fields != job.RewardFields{Subject: "user_id", Value: "value", At: "ts"}:
		t.Errorf("%+v %+v", r.Source, r.Source.Fields)
	case *e.Guardrails[0].Limit != -.5 || e.Guardrails[0].Action != job.GuardRollback || e.Guardrails[0].MinN != 100:
		t.Errorf("%+v", e.Guardrails[0])
	case e.Moving().Gamma != .9 || e.Moving().Kind != "thompson-gaussian" || *e.Deciding().LossMax != .001 || e.Deciding().MinRuntime != 0:
		t.Errorf("%+v %+v", e.Moving(), e.Deciding())
	}
	e = parse(t, plainJob+"experiment: {mode: ramp, ramp: [{weight: 0.05, hold: 1h}, {weight: 0.5, hold: 1d}], guardrails: none}\n").Experiment
	if want := []job.RampStep{{Weight: .05, Hold: time.Hour}, {Weight: .5, Hold: 24 * time.Hour}}; !reflect.DeepEqual(e.Ramp, want) || !e.NoGuardrails {
		t.Errorf("%+v", e)
	}
}

// An experiment changes how results are read, not what they are.
func TestAnExperimentChangesNoHash(t *testing.T) {
	plain := parse(t, plainJob)
	tested := parse(t, plainJob+"experiment: {reward: {kind: bernoulli, source: {sql: SELECT 1}}, decide: {mde: 0.02}}\n")
	if plain.Hash(1) != tested.Hash(1) {
		t.Error("the hash differs")
	}
	if !strings.Contains(tested.Experiment.Reward.Source.SQL, "SELECT") || tested.Experiment.Reward.Source.Every != time.Minute {
		t.Errorf("%+v", tested.Experiment.Reward.Source)
	}
}
