// Package status is the read model of commands: jobs with their versions, partitions, checks and open deployments
// at one moment, as status, watch and the metrics show them. It writes nothing.
package status
