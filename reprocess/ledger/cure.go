package ledger

import (
	"github.com/jackc/pgerrcode"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// Hopeless reports that an error of a step of the build would come again: an error over the data, or a refusal. A right
// that is missing can be granted.
func Hopeless(err error) (Answer, bool) {
	a, refused := AnswerOf(err)
	switch code := pg.Code(err); {
	case code == pgerrcode.InsufficientPrivilege:
		return Answer{}, false
	case refused:
		return a, true
	case code == "" || pg.Unreachable(err) || pg.Retryable(err):
		return Answer{}, false
	case code[:2] == "22" || code[:2] == "23" || code[:2] == "42":
		return Answer{Code: job.ExitUnhealthy, Reason: reason.BuildFailed(err)}, true
	}
	return Answer{}, false
}

// WayOut is a command that ends a fault of a version that readers see or may go back to.
func WayOut(ref job.Ref, p job.Partition, f job.Fault) reason.Reason {
	switch {
	case f.Kind == job.FaultMissing, f.Kind == job.FaultRecreated:
		return reason.ReturnsOrDeploy()
	case f.Kind == job.FaultTable, f.Kind == job.FaultEpochs, f.Kind == job.FaultProgram:
		return reason.ResumeOrDeploy(ref)
	case f.To > f.From:
		return reason.ResumeSkips(ref, Gap{Topic: p.Topic, Partition: p.ID, From: f.From, To: f.To}.String())
	}
	return reason.ResumeRetries(ref)
}
