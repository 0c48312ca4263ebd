package devstack

import (
	"errors"
	"fmt"
	"os"
)

// Remove deletes the folder of a closed stack, and its cluster if that is elsewhere.
func Remove(dir string) error {
	var errs []error
	if exists(statePath(dir)) {
		st, err := readState(dir)
		errs = append(errs, err)
		if st.PostgresData != "" {
			errs = append(errs, os.RemoveAll(st.PostgresData))
		}
	}
	if err := errors.Join(append(errs, os.RemoveAll(dir))...); err != nil {
		return fmt.Errorf("remove the stack's folder: %w", err)
	}
	return nil
}
