-- The node of a cell that a version of a module is activated for; none for all.
ALTER TABLE module_activation ADD COLUMN node TEXT;
