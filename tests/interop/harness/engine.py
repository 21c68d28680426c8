"""An engine of a cell as a child of this process, in a folder of its own: what is done to each kind in the same way."""

import shutil
import signal
import subprocess


class Engine:
    """Its shell in `_shell`, which ends it when standard input is closed; its own process in `pid`; its files in `folder`."""

    def stop(self):
        self._shell.stdin.close()
        self._shell.wait()

    def pause(self):
        """It does nothing until it is told to go on."""
        self._signal(signal.SIGSTOP)

    def go_on(self):
        self._signal(signal.SIGCONT)

    def _signal(self, number):
        subprocess.run(["kill", f"-{number.value}", str(self.pid)], check=True)

    def end(self):
        if self._shell.poll() is None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
