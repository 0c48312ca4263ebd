package reason

import "github.com/kappactl/kappactl/internal/job"

// Codes of the batch generations of a lambda version.
const (
	CodeBatchStarted      Code = "batch_started"
	CodeBatchShown        Code = "batch_shown"
	CodeBatchChanged      Code = "batch_changed"
	CodeBatchChecked      Code = "batch_checked"
	CodeBatchAccepted     Code = "batch_accepted"
	CodeBatchUnreadable   Code = "batch_unreadable"
	CodeBatchMissing      Code = "batch_missing"
	CodeBatchCancelled    Code = "batch_cancelled"
	CodeBatchVoid         Code = "batch_void"
	CodeBatchVersionEnded Code = "batch_version_ended"
	CodeBatchRolledBack   Code = "batch_rolled_back"
	CodeBatchNotKept      Code = "batch_not_kept"
	CodeBatchAlreadyLive  Code = "batch_already_live"
	CodeBatchUnderWay     Code = "batch_under_way"
	CodeBatchNoneUnderWay Code = "batch_none_under_way"
	CodeBatchTooEarly     Code = "batch_too_early"
	CodeBatchRemoved      Code = "batch_removed"
	CodeBatchWaitsLocks   Code = "batch_waits_locks"
	CodeBatchWaitsReaders Code = "batch_waits_readers"
	CodeBatchPaused       Code = "batch_paused"
	CodeBatchHeld         Code = "batch_held"
	CodeNotLambda         Code = "not_lambda"
)

func batchTexts() map[Code]string {
	const generation = `generation {{text .generation}} of {{text .version}}`
	return map[Code]string{
		CodeBatchStarted: generation + ` is computed ` +
			`{{if .base}}from generation {{text .base}} and what came since{{else}}from scratch{{end}}`,
		CodeBatchShown: generation + ` is live{{if .compared}}; {{plural .compared "key" "keys"}} compared, ` +
			`{{count .changed}} changed{{end}}{{if .accepted}}, accepted{{end}}`,
		CodeBatchChanged: `{{count .changed}} of {{plural .compared "key" "keys"}} of ` + generation +
			` differ from what readers see, {{percent .share}}; batch.max_changed is {{percent .limit}}`,
		CodeBatchChecked:    generation + ` is not shown:{{lines .checks}}`,
		CodeBatchAccepted:   generation + `, which was refused, is accepted as it is`,
		CodeBatchUnreadable: generation + ` cannot be computed: {{text .cause}}`,
		CodeBatchMissing:    `{{text .at}} {{text .range}} is neither in the archive nor in the log: no generation can be computed`,
		CodeBatchCancelled:  `the run of ` + generation + ` was cancelled{{if .by}} by {{text .by}}{{end}}`,
		CodeBatchVoid: generation +
			` is void: generation {{text .base}}, from which it was computed, is no longer live`,
		CodeBatchVersionEnded: generation + ` is given up: {{text .version}} is {{text .phase}}`,
		CodeBatchRolledBack: generation + ` is live again instead of generation {{text .from}}` +
			`{{if .cancelled}}; the run of generation {{text .cancelled}} is cancelled{{end}}` +
			`{{if .paused}}; the schedule is paused{{end}}`,
		CodeBatchNotKept: generation + ` is {{text .state}}: readers can be shown a kept one` +
			`{{if .kept}} ({{list .kept}}){{else}}, and there is none{{end}}`,
		CodeBatchAlreadyLive:  generation + ` is live already`,
		CodeBatchUnderWay:     generation + ` is being computed`,
		CodeBatchNoneUnderWay: `no batch run of {{text .version}} is under way`,
		CodeBatchTooEarly:     `{{text .version}} is {{text .phase}}: its first generation is its replay`,
		CodeBatchRemoved:      generation + ` is removed`,
		CodeBatchWaitsLocks:   `it waits for locks of other sessions: {{text .cause}}`,
		CodeBatchWaitsReaders: `it waits for snapshots that are older than the flip away from it: {{list .readers}}`,
		CodeBatchHeld: `{{if .generation}}generation {{text .generation}} of {{text .version}}` +
			`{{else}}the batch run of {{text .version}}{{end}}: {{text .why}}`,
		CodeBatchPaused: `{{text .version}} is paused: nothing is read for generations until it is resumed`,
		CodeNotLambda:   `{{text .version}} has no batch layer: its job file has no mode: lambda`,
	}
}

func ofGeneration(code Code, ref job.Ref, generation int, more Args) Reason {
	a := Args{"version": ref.String(), "generation": generation}
	for name, v := range more {
		a[name] = v
	}
	return Reason{code, a}
}

// BatchStarted is a generation whose computation began: from the states of another one, or from scratch when base is
// nil.
func BatchStarted(ref job.Ref, generation int, base *int) Reason {
	if base == nil {
		return ofGeneration(CodeBatchStarted, ref, generation, nil)
	}
	return ofGeneration(CodeBatchStarted, ref, generation, Args{"base": Count(int64(*base))})
}

// BatchShown is a generation that readers see now; compared is nil when it was not compared with what they saw.
func BatchShown(ref job.Ref, generation int, compared, changed *int64, accepted bool) Reason {
	a := Args{}
	if compared != nil && changed != nil {
		a["compared"], a["changed"] = *compared, *changed
	}
	if accepted {
		a["accepted"] = true
	}
	return ofGeneration(CodeBatchShown, ref, generation, a)
}

// BatchChanged is a generation that is not shown because too much of it differs from what readers see.
func BatchChanged(ref job.Ref, generation int, compared, changed int64, share, limit float64) Reason {
	return ofGeneration(CodeBatchChanged, ref, generation,
		Args{"compared": compared, "changed": changed, "share": share, "limit": limit})
}

// BatchChecked is a generation that is not shown because checks of the job did not pass.
func BatchChecked(ref job.Ref, generation int, checks []Reason) Reason {
	return ofGeneration(CodeBatchChecked, ref, generation, Args{"checks": checks})
}

// BatchAccepted is a refused generation that a person wants to be shown.
func BatchAccepted(ref job.Ref, generation int) Reason {
	return ofGeneration(CodeBatchAccepted, ref, generation, nil)
}

// BatchUnreadable is a generation whose records cannot be read or computed with.
func BatchUnreadable(ref job.Ref, generation int, cause Reason) Reason {
	return ofGeneration(CodeBatchUnreadable, ref, generation, Args{"cause": cause})
}

// BatchMissing is offsets of a partition that a generation would need and nothing holds.
func BatchMissing(at job.Partition, r job.Range) Reason {
	return Reason{CodeBatchMissing, Args{"at": at.String(), "range": r.String()}}
}

// BatchCancelled is a run that was ended by a person, who may be empty.
func BatchCancelled(ref job.Ref, generation int, by string) Reason {
	r := ofGeneration(CodeBatchCancelled, ref, generation, nil)
	return optional(r.Code, r.Args, "by", by)
}

// BatchVoid is an incremental generation whose base is no longer live.
func BatchVoid(ref job.Ref, generation, base int) Reason {
	return ofGeneration(CodeBatchVoid, ref, generation, Args{"base": base})
}

// BatchVersionEnded is a generation of a version that goes away.
func BatchVersionEnded(ref job.Ref, generation int, phase job.Phase) Reason {
	return ofGeneration(CodeBatchVersionEnded, ref, generation, Args{"phase": string(phase)})
}

// BatchRolledBack is a kept generation that readers see again. cancelled is the generation whose run was ended for it,
// or nil; paused reports that the schedule is paused.
func BatchRolledBack(ref job.Ref, generation, from int, cancelled *int, paused bool) Reason {
	a := Args{"from": from}
	if cancelled != nil {
		a["cancelled"] = *cancelled
	}
	if paused {
		a["paused"] = true
	}
	return ofGeneration(CodeBatchRolledBack, ref, generation, a)
}

// BatchNotKept is a generation that readers cannot be shown again, with those that they can.
func BatchNotKept(ref job.Ref, generation int, state string, kept []string) Reason {
	a := Args{"state": state}
	if len(kept) > 0 {
		a["kept"] = kept
	}
	return ofGeneration(CodeBatchNotKept, ref, generation, a)
}

// BatchAlreadyLive is a generation that readers see already.
func BatchAlreadyLive(ref job.Ref, generation int) Reason {
	return ofGeneration(CodeBatchAlreadyLive, ref, generation, nil)
}

// BatchUnderWay is a run that another one has to wait for.
func BatchUnderWay(ref job.Ref, generation int) Reason {
	return ofGeneration(CodeBatchUnderWay, ref, generation, nil)
}

// BatchNoneUnderWay is a version without a run under way.
func BatchNoneUnderWay(ref job.Ref) Reason {
	return Reason{CodeBatchNoneUnderWay, Args{"version": ref.String()}}
}

// BatchTooEarly is a version whose replay has not ended, or that has ended.
func BatchTooEarly(ref job.Ref, phase job.Phase) Reason {
	return Reason{CodeBatchTooEarly, Args{"version": ref.String(), "phase": string(phase)}}
}

// BatchRemoved is a generation whose rows are gone.
func BatchRemoved(ref job.Ref, generation int) Reason {
	return ofGeneration(CodeBatchRemoved, ref, generation, nil)
}

// BatchWaitsLocks is a step that waits for locks of other sessions; cause is PostgreSQL's message.
func BatchWaitsLocks(cause string) Reason { return Reason{CodeBatchWaitsLocks, Args{"cause": cause}} }

// BatchWaitsReaders is a generation that is not removed while sessions, standbys or replication slots hold older
// snapshots.
func BatchWaitsReaders(readers []string) Reason {
	return Reason{CodeBatchWaitsReaders, Args{"readers": readers}}
}

// BatchPaused is a version whose generations are not computed because it is paused.
func BatchPaused(ref job.Ref) Reason {
	return Reason{CodeBatchPaused, Args{"version": ref.String()}}
}

// BatchHeld is a batch run, or the removal of a generation, that does not go on; generation is nil when the run has
// begun none.
func BatchHeld(ref job.Ref, generation *int, why Reason) Reason {
	a := Args{"version": ref.String(), "why": why}
	if generation != nil {
		a["generation"] = Count(int64(*generation))
	}
	return Reason{CodeBatchHeld, a}
}

// NotLambda is a version without a batch layer.
func NotLambda(ref job.Ref) Reason { return Reason{CodeNotLambda, Args{"version": ref.String()}} }
