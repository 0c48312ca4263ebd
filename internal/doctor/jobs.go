package doctor

import (
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/status"
)

// versions notes every version of a job that does not go on, with the cause.
func (e *examination) versions(s status.Job) {
	for _, v := range s.Versions {
		if v.Verdict != job.Unhealthy && v.Verdict != job.Stalled || v.Paused {
			continue
		}
		e.note(string(s.Job)+" "+v.Version, Failed, "kappactl status "+string(s.Job), "%s, %s: %s", v.Phase, v.Verdict,
			v.Reason)
	}
}
