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
		newContext(a),
		newDoctor(a, runDoctor),
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
		newAdopt(a, runAdopt),
		newDrop(a, runDrop),
		newPin(a, runPin),
		newUnpin(a, runPin),
		newStatus(a, runStatus),
		newHistory(a, runHistory),
		newReport(a, runReport),
		newDeadletter(a),
		newQuery(a, runQuery),
		newWatchUI(a, runWatchUI),
		newDiff(a, runDiff),
		newVerify(a, runVerify),
		newServe(a, runServe),
		newSchema(a, runSchema),
		newVersion(a, runVersion),
		newCompletion(a, runCompletion),
		newMan(a, runMan),
	}
}
