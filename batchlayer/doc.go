// Package batchlayer will run a job as Lambda: an archive of the topics as Parquet files, batch generations computed from
// it on a schedule, and their exact merge with the speed layer at query time.
//
// What it builds on is in place: internal/query derives the same PARTIAL for both layers, speedlayer commits states and
// positions together, and serving writes views from a contract. A job file with `mode: lambda` is refused until then.
package batchlayer
