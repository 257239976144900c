-- A job that died between two exchanges, as the versions of format 1 write it.
BEGIN TRANSACTION;
CREATE TABLE days (day TEXT PRIMARY KEY, line TEXT) WITHOUT ROWID;
CREATE TABLE dirs (id INTEGER PRIMARY KEY, parent INTEGER, name BLOB NOT NULL,
    dev INTEGER NOT NULL, ino INTEGER NOT NULL, mtime INTEGER, intent REAL);
INSERT INTO "dirs" VALUES(1,NULL,X'@hex@',@dev@,@root@,1795445736181846951,1.79544573632565855982e+09);
INSERT INTO "dirs" VALUES(2,1,X'62656C6F77',@dev@,@below@,1795445736181817587,1.79544573632565855982e+09);
CREATE TABLE files (id INTEGER PRIMARY KEY, dir INTEGER NOT NULL, name BLOB NOT NULL,
    ino INTEGER NOT NULL, size INTEGER NOT NULL, nlink INTEGER NOT NULL, rank INTEGER NOT NULL,
    state INTEGER NOT NULL, reason TEXT, temp BLOB, old INTEGER, new INTEGER, digest BLOB,
    offset INTEGER NOT NULL DEFAULT 0);
INSERT INTO "files" VALUES(1,1,X'6232',@b@,200,2,55,2,NULL,X'2E7A632D633136636466633562626161383335322D31',@b@,@new_b@,X'923EEE27F8F6066121E426AF1188CCD9A930C5CC7A562E50D8AEF405E7B8DFAC',0);
INSERT INTO "files" VALUES(2,1,X'63',@c@,300,1,54,2,NULL,X'2E7A632D633136636466633562626161383335322D32',@c@,@new_c@,X'F2C0108CA393657068066025355827DE6040FA16958B2613FFB04AEFDA5530ED',0);
INSERT INTO "files" VALUES(3,1,X'62',@b@,0,2,55,2,NULL,X'2E7A632D633136636466633562626161383335322D33',@b@,@new_b@,X'923EEE27F8F6066121E426AF1188CCD9A930C5CC7A562E50D8AEF405E7B8DFAC',0);
INSERT INTO "files" VALUES(4,1,X'61',@a@,100,1,56,2,NULL,X'2E7A632D633136636466633562626161383335322D34',@a@,@new_a@,X'498BC3C34E4C221CD0DAAB50BA5548279F5F7C610C54230C57FD83C5311A7D4D',0);
INSERT INTO "files" VALUES(5,2,X'64',@d@,400,1,54,2,NULL,X'2E7A632D633136636466633562626161383335322D35',@d@,@new_d@,X'7A909C9109E498B68D59A197F811694D1B6EE518408F27ABD532F4A479CEEAA9',0);
INSERT INTO "files" VALUES(6,2,X'65',@e@,500,1,54,0,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "files" VALUES(7,2,X'66',@f@,600,1,54,1,NULL,X'2E7A632D633136636466633562626161383335322D37',@f@,0,X'',0);
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
INSERT INTO "meta" VALUES('changing_until','1795445736.8007302');
INSERT INTO "meta" VALUES('control','{"order": "run", "limits": {"rate": 1000000000.0}}');
INSERT INTO "meta" VALUES('format','1');
INSERT INTO "meta" VALUES('job','{"name": "396abe", "settings": {"dirs": ["@path@"], "engine": "auto", "aim": "balance", "accept_races": false, "allow_non_zfs": true, "during_scan": false, "limits": {"rate": null, "max_latency": null, "window": null, "max_bytes": null, "until_spread": null, "min_free": null}}, "engines": {"@path@": "copy"}, "spaces": [], "raw_factor": 1.0, "floors": {"@path@": [0, 25276514304]}, "rooms": {"@path@": 25186533376}, "bytes_to_target": null, "created": 1795445736.287466}');
INSERT INTO "meta" VALUES('keys','{"@path@": "@key@"}');
INSERT INTO "meta" VALUES('status','{"state": "running", "why": null, "files_done": 0, "files_total": 5, "files_skipped": 0, "files_failed": 0, "bytes_done": 0, "bytes_handled": 0, "bytes_total": 1000, "rate": null, "eta_seconds": null, "current": null, "vdevs": null, "pid": 12536, "t": 1795445736.2993708, "notes": []}');
INSERT INTO "meta" VALUES('walk_skipped','{}');
INSERT INTO "meta" VALUES('walking','{"settings": {"dirs": ["@path@"], "engine": "auto", "aim": "balance", "accept_races": false, "allow_non_zfs": true, "during_scan": false, "limits": {"rate": null, "max_latency": null, "window": null, "max_bytes": null, "until_spread": null, "min_free": null}}, "agreed": true}');
CREATE INDEX dirs_open ON dirs (id) WHERE intent IS NOT NULL;
CREATE INDEX files_order ON files (rank, dir, id);
CREATE INDEX files_links ON files (ino) WHERE nlink > 1;
CREATE INDEX files_open ON files (state) WHERE state IN (1, 2);
COMMIT;
