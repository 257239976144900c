"""Record the demo and draw it; with ``--draw``, only draw the saved recording."""

import sys

from tests.cast import CAST, PICTURE, script
from tests.cast.asciicast import dumped, loaded
from tests.cast.picture import drawn
from tests.cast.recorder import record

if "--draw" not in sys.argv[1:]:
    CAST.write_text(dumped(record()), encoding="utf-8")
PICTURE.write_text(drawn(loaded(CAST.read_text("utf-8")), script.STILL), encoding="utf-8")
for kept in (CAST, PICTURE):
    print(f"{kept.name}: {kept.stat().st_size:,} bytes")
