# All that the system catalogs hold of an extension, as text that two databases can be compared by.
package PgwarpCatalog;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';

our @EXPORT = qw(catalog_of);

# Catalogs with rows of an extension. A row belongs to it by its own oid, or by that of the object in the column named.
my %owner = (
	pg_type => 'oid', pg_proc => 'oid', pg_operator => 'oid', pg_opclass => 'oid', pg_opfamily => 'oid', pg_amop => 'oid',
	pg_amproc => 'oid', pg_cast => 'oid', pg_am => 'oid', pg_class => 'oid', pg_rewrite => 'oid',
	pg_aggregate => ['aggfnoid', 'pg_proc'], pg_attribute => ['attrelid', 'pg_class'], pg_enum => ['enumtypid', 'pg_type'],
	pg_description => ['objoid', undef], pg_init_privs => ['objoid', undef]);

# Columns that differ between databases and say nothing (15.20 numbers versions of attributes in attoptions), or that hold trees and arrays of oids whose text is compared instead.
my %left_out = map { $_ => 1 } qw(attoptions relfilenode relfrozenxid relminmxid relpages reltuples relallvisible relallfrozen
	proargtypes proallargtypes proargdefaults prosqlbody ev_qual ev_action typdefaultbin);

# What these mean. The arguments of an aggregate stand in its name.
my %text_of = (
	pg_proc => q{CASE WHEN c.prokind <> 'a' THEN pg_get_functiondef(c.oid) ELSE c.oid::regprocedure::text END},
	pg_rewrite => 'pg_get_ruledef(c.oid)');

# The members of the extension and what belongs to them, as (classid, objid).
my $members = q{
	WITH RECURSIVE members AS (
		SELECT classid, objid FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
			AND refobjid = (SELECT oid FROM pg_extension WHERE extname = '%s')
		UNION
		SELECT d.classid, d.objid FROM pg_depend d JOIN members m ON d.refclassid = m.classid AND d.refobjid = m.objid
			WHERE d.deptype IN ('i', 'a'))};

# The rows of one catalog, with names in place of the oids that $keys tells of.
sub rows_of
{
	my ($catalog, @keys) = @_;
	my ($column, $class) = ref $owner{$catalog} ? @{$owner{$catalog}} : ('oid', $catalog);
	my $same_class = defined $class ? "'$class'::regclass" : 'c.classoid';
	my @dropped = map { "'$_'" } 'oid', sort keys %left_out;
	my @named = ("'class', '$catalog'", map { "'$_->[0]', pg_describe_object('$_->[1]'::regclass, c.$_->[0], 0)" } @keys);
	# These two say to which catalog the oid belongs.
	push @named, "'objoid', pg_describe_object(c.classoid, c.objoid, c.objsubid)" if !defined $class;
	push @named, "'text', $text_of{$catalog}" if $text_of{$catalog};
	return "SELECT to_jsonb(c) - ARRAY[" . join(', ', @dropped) . '] || jsonb_build_object(' . join(', ', @named) . ") AS line
		FROM $catalog c WHERE (($same_class)::oid, c.$column) IN (SELECT classid, objid FROM members)";
}

# One line for each row of a catalog that the extension has, in order.
sub catalog_of
{
	my ($node, $database, $extension) = @_;
	my %keys;
	for (split /\n/, $node->safe_psql($database, q{SELECT fktable || ' ' || fkcols[1] || ' ' || pktable FROM pg_get_catalog_foreign_keys()
		WHERE NOT is_array AND array_length(fkcols, 1) = 1}))
	{
		my ($catalog, $column, $target) = split / /;
		push @{$keys{$catalog}}, [ $column, $target ];
	}
	my @parts = map { rows_of($_, sort { $a->[0] cmp $b->[0] } @{$keys{$_} // []}) } sort keys %owner;
	my $text = $node->safe_psql($database, sprintf($members, $extension) . 'SELECT line FROM ('
		. join(' UNION ALL ', @parts) . q{) s ORDER BY line::text COLLATE "C"});
	return split /\n/, $text;
}

1;
