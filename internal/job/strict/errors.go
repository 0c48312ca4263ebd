package strict

import "errors"

// WantError is why a text is not taken, with the cure.
type WantError struct{ Cause, Cure string }

func (e *WantError) Error() string {
	if e.Cure == "" {
		return e.Cause
	}
	return e.Cause + "; " + e.Cure
}

// Want makes a WantError.
func Want(cause, cure string) error { return &WantError{Cause: cause, Cure: cure} }

// Explain splits an error into cause and cure; only one made by Want has a cure.
func Explain(err error) (cause, cure string) {
	var want *WantError
	if errors.As(err, &want) {
		return want.Cause, want.Cure
	}
	return err.Error(), ""
}
