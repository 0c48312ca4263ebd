package status

import (
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// Effect describes what an act on a version does: Would follows "would VERB JOB VERSION:", Does is a sentence to
// confirm.
type Effect struct{ Would, Does string }

// EffectOf returns the effect of a verb on a version of j. Acts on whole jobs have none here.
func EffectOf(verb ledger.Verb, ref job.Ref, j Job) Effect {
	live := "nothing"
	if j.Live != nil {
		live = *j.Live
	}
	n := ref.Number.String()
	switch verb {
	case ledger.Promote:
		return Effect{
			Would: fmt.Sprintf("run the checks at equal offsets, then make %s read %s in place of %s", j.View, n, live),
			Does: fmt.Sprintf("Runs the checks at equal offsets, then %s reads %s in place of %s, in one transaction.", j.View,
				n, live),
		}
	case ledger.Rollback:
		return Effect{
			Would: fmt.Sprintf("make %s read %s in place of %s", j.View, n, live),
			Does:  fmt.Sprintf("%s reads %s in place of %s, in one transaction.", j.View, n, live),
		}
	case ledger.Abort:
		return Effect{
			Would: "stop its work and drop its " + tablesOf(ref, j),
			Does:  "Stops the work of " + n + " and drops its " + tablesOf(ref, j) + ". Readers see no change.",
		}
	case ledger.Pause:
		return Effect{
			Would: "stop its work and keep its positions", Does: "Stops the work of " + n + " and keeps its positions.",
		}
	case ledger.Resume:
		return Effect{Would: "go on at its positions", Does: n + " goes on where it stopped."}
	case ledger.Retire:
		return retireEffect(ref, j)
	case ledger.Drop, ledger.Adopt, ledger.BatchRun, ledger.BatchCancel, ledger.BatchRollback,
		ledger.ABStart, ledger.ABWeights, ledger.ABPause, ledger.ABResume, ledger.ABStop:
	}
	return Effect{}
}

func retireEffect(ref job.Ref, j Job) Effect {
	if ref.Adopted() {
		stays := "its table " + ref.Table() + ", which was there before the job, stays"
		return Effect{
			Would: "end the way back to it; " + stays,
			Does:  "Ends the way back to " + ref.Number.String() + "; " + stays + ".",
		}
	}
	return Effect{
		Would: "stop its work, drop its " + tablesOf(ref, j) + " and delete its consumer group",
		Does:  "Stops the work of " + ref.Number.String() + " for good and drops its " + tablesOf(ref, j) + ".",
	}
}

// tablesOf names the tables of a version of j: "table a__v1", or of mode lambda "tables a__v1, a__v1_batch, a__v1_gen".
func tablesOf(ref job.Ref, j Job) string {
	v := j.Find(ref.Number.String())
	if v == nil || len(v.Tables) < 2 {
		return "table " + ref.Table()
	}
	return "tables " + strings.Join(v.Tables, ", ")
}
