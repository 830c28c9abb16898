-- the nearest rows by an index that may miss some: :index what is indexed, with its options
CREATE INDEX items_index ON items USING :index;
SELECT * FROM found_share('<->', 1);
SELECT * FROM found_share('<->', 10);
SELECT * FROM found_share('<->', 200);
-- a row that an approximate search missed doesn't come after farther ones
SELECT rows > 29000 AS most, enough, ordered FROM found_share('<->', 2999);
SELECT * FROM found_share('<->', 10, 'kind = 3');
SELECT * FROM found_share('<->', 5, 'id < 20');
SET pgwarp.iterative = relaxed;
SELECT rows, enough FROM found_share('<->', 10, 'kind = 3');
SELECT rows, enough FROM found_share('<->', 5, 'id < 20');
RESET pgwarp.iterative;
