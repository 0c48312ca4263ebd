package status

import (
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// Find returns the version of that name, or nil.
func (j Job) Find(version string) *Version {
	for i := range j.Versions {
		if j.Versions[i].Version == version {
			return &j.Versions[i]
		}
	}
	return nil
}

// LiveVersion returns the version that readers see, or nil.
func (j Job) LiveVersion() *Version {
	if j.Live == nil {
		return nil
	}
	return j.Find(*j.Live)
}

// Main returns the version that commands use by default: the newest candidate, otherwise the live one; nil if the job
// has neither.
func (j Job) Main() *Version {
	for i := range j.Versions { // newest first
		if ledger.Candidate(j.Versions[i].Phase) {
			return &j.Versions[i]
		}
	}
	for i := range j.Versions {
		if j.Versions[i].Phase == job.Live {
			return &j.Versions[i]
		}
	}
	return nil
}
