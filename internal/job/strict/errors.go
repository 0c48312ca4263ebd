package strict

import "errors"

// WantError explains why a text is not accepted, with the fix.
type WantError struct{ Cause, Cure string }

func (e *WantError) Error() string {
	if e.Cure == "" {
		return e.Cause
	}
	return e.Cause + "; " + e.Cure
}

// Want returns a WantError.
func Want(cause, cure string) error { return &WantError{Cause: cause, Cure: cure} }

// Explain splits an error into cause and fix; only errors created by Want have a fix.
func Explain(err error) (cause, cure string) {
	var want *WantError
	if errors.As(err, &want) {
		return want.Cause, want.Cure
	}
	return err.Error(), ""
}
