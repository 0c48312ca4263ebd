package job

// Supported returns Problems for the settings of a valid job file that this release does not support, or nil. A feature
// that arrives removes its line; no setting is silently ignored.
func (s *Spec) Supported() error {
	var ps Problems
	later := func(path, what, cure string) {
		ps = append(ps, s.Problem(path, "", what+": not in this release", cure))
	}
	switch s.Source.Format {
	case "json", "csv", "raw":
	default:
		later("source.format", "the format "+s.Source.Format,
			"write the records as JSON objects and format: json, or use csv or raw")
	}
	if len(ps) == 0 {
		return nil
	}
	return ps
}
