package cli

import "github.com/spf13/cobra"

// commands are all commands below the root. A new command is a file and a line here.
func commands(a *app) []*cobra.Command {
	dev := newDev(a, runDev)
	dev.AddCommand(newDevLoad(a, runDevLoad))
	return []*cobra.Command{
		dev,
		newDemo(a, runDemo),
		newInit(a, runInit),
		newCheck(a, runCheck),
		newTest(a, runTest),
		newPlan(a, runPlan),
		newDeploy(a, runDeploy),
		newWait(a, runWait),
		newPromote(a, runPromote),
		newRollback(a, runRollback),
		newAbort(a, runAbort),
		newPause(a, runPause),
		newResume(a, runResume),
		newRetire(a, runRetire),
		newStatus(a, runStatus),
		newWatchUI(a, runWatchUI),
		newVerify(a, runVerify),
		newServe(a, runServe),
		newSchema(a, runSchema),
		newVersion(a, runVersion),
		newCompletion(a, runCompletion),
	}
}
