package devstack

import (
	"errors"
	"fmt"
	"os"

	"github.com/kappactl/kappactl/internal/devstack/postgres"
)

// TempFolder makes a folder for a stack that is thrown away: one that the account which runs PostgreSQL can reach, also
// when we are root. Remove it after Close.
func TempFolder() (string, error) { return postgres.TempFolder() }

// Remove removes the folder of a stack that is closed, and its cluster where that lives elsewhere.
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
