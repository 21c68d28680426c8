-- What a node of a cell says of itself to those that join: its release, the versions of the form that it reads, and the settings that all nodes
-- have in common, a line each. Nodes of an earlier release say nothing.
ALTER TABLE node ADD COLUMN release text NOT NULL DEFAULT '';
ALTER TABLE node ADD COLUMN form_oldest integer NOT NULL DEFAULT 0;
ALTER TABLE node ADD COLUMN form_newest integer NOT NULL DEFAULT 0;
ALTER TABLE node ADD COLUMN shared text NOT NULL DEFAULT '';
