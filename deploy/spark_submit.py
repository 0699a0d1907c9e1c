"""What spark-submit runs: kafka-quotas, whose code comes as one wheel.

spark-submit --master spark://host:7077 --py-files kafka_quota_reconciler-0.1.0-py3-none-any.whl spark_submit.py backtest ...
"""

import sys

if not sys.flags.safe_path:
    # Python put this file's folder there, which may be a work tree: no module of it may run.
    del sys.path[0]

import tempfile
import zipfile


def unpacked(folder: str) -> None:
    """Schemas are files, which an archive on Python's path does not give: unpack the wheel, and look there first."""
    for wheel in [path for path in sys.path if path.endswith(".whl")]:
        zipfile.ZipFile(wheel).extractall(folder)
    sys.path.insert(0, folder)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="kafka-quotas-") as code:
        unpacked(code)
        from reconciler.cli.main import main

        sys.exit(main())
