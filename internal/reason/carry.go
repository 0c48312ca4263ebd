package reason

import (
	"errors"

	"github.com/kappactl/kappactl/internal/job"
)

// carrier is an error that is nothing but its reason.
type carrier struct{ reason Reason }

func (c carrier) Error() string { return c.reason.Text() }

// Err is the reason as an error, for the chain of a refusal.
func (r Reason) Err() error { return carrier{r} }

// Of is the reason in the chain of an error. An error without one is CodeRefused with the cause of its refusal, or
// CodeError with its text. It is zero for nil.
func Of(err error) Reason {
	var c carrier
	var r *job.Refusal
	switch {
	case err == nil:
		return Reason{}
	case errors.As(err, &c):
		return c.reason
	case errors.As(err, &r):
		return Refused(r.Cause)
	}
	return Error(err)
}
