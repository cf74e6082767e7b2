"""Documents as long as e-mails, made from French words; the same ones for the same seed, everywhere.

Words are drawn, not written: what is measured here is time and memory, and whether two ways of training reach the same
accuracy. How well a model reads French is measured on real texts (french_topics.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

SPREAD = 0.88  # of the logarithm of lengths: with a median of 108 and a cap of 512 tokens the mean is 150

_COMMON = """
    le la les un une des du de au aux et ou mais donc car ni que qui dont où quand comme si pour par avec sans
    sous sur dans entre vers chez depuis pendant avant après je tu il elle nous vous ils elles on ce cette ces
    mon ma mes votre vos notre nos leur leurs est sont était sera avez avons ai a ont peut peuvent dois doit
    faire fait voir vu dire dit prendre mettre envoyer reçu demander répondre merci bonjour madame monsieur
    cordialement salutations équipe service message jour semaine mois année hier demain matin soir déjà encore
    toujours jamais souvent parfois très plus moins trop assez bien mal ici là aussi ainsi alors ensuite enfin
    pourtant cependant parce votre part suite objet dossier numéro référence réponse question personne temps
    chose point moment lieu main partie petit grand nouveau dernier premier autre même seul possible simple
"""
COMMON = tuple(_COMMON.split())
TOPICS = {
    "facturation": "facture montant tva avoir relevé échéance débit paiement doublon tarif euros compta acompte",
    "livraison": "colis livreur transporteur retard adresse suivi expédition entrepôt carton quai chauffeur relais",
    "technique": "panne erreur écran logiciel connexion serveur bogue redémarrage mise-à-jour câble réseau pilote",
    "résiliation": "résilier contrat préavis abonnement clôture terme rétractation engagement départ annuler cesser",
    "réclamation": "scandaleux inadmissible plainte mécontent litige déçu médiateur remboursement honteux préjudice",
    "commercial": "devis offre remise catalogue commande gamme partenaire promotion rendez-vous essai prospect volume",
    "ressources": "congé salaire bulletin embauche candidature stage entretien formation mutuelle absence planning",
    "compte": "mot-de-passe identifiant profil accès bloqué inscription courriel vérification authentification code",
}


@dataclass(frozen=True)
class Corpus:
    """Texts, the class of each, and its length in tokens of the tokenizer that they were built for."""

    texts: list[str]
    labels: np.ndarray
    lengths: np.ndarray

    @property
    def n_tokens(self) -> int:
        return int(self.lengths.sum())

    def take(self, rows: Any) -> Corpus:
        rows = np.arange(len(self.texts))[rows]
        return Corpus([self.texts[i] for i in rows], self.labels[rows], self.lengths[rows])


def mails(
    tokenizer: Any,
    n_documents: int,
    seed: int,
    *,
    median: float = 108,
    longest: int = 512,
    topical: float = 0.15,
    mislabelled: float = 0.05,
) -> Corpus:
    """Build labelled texts whose token counts, special tokens included, are log-normal as those of e-mails are.

    A share `topical` of the words comes from the class's own list, as many from all classes alike, and a
    share `mislabelled` of the documents carries a wrong label, so that accuracy has a ceiling below 1.
    """
    random = np.random.default_rng(seed)
    lengths = np.exp(random.normal(np.log(median), SPREAD, n_documents)).round().clip(8, longest).astype(int)
    topics = [words.split() for words in TOPICS.values()]
    known = {*COMMON, *(word for words in topics for word in words)}
    # a tokenizer splits at spaces first, so that the tokens of words add up
    cost = {word: len(tokenizer(word, add_special_tokens=False)["input_ids"]) for word in known}
    labels = random.integers(len(topics), size=n_documents)
    shortest = next(word for word in COMMON if cost[word] == 1)
    texts = []
    for length, label in zip(lengths, labels, strict=True):
        words, tokens = [], 2
        while True:
            kind = random.random()
            source = topics[label] if kind < topical else COMMON
            if topical <= kind < 2 * topical:
                source = topics[random.integers(len(topics))]
            word = source[random.integers(len(source))]
            if tokens + cost[word] > length:
                break
            words.append(word)
            tokens += cost[word]
        texts.append(" ".join([*words, *[shortest] * (length - tokens)]))
    wrong = random.random(n_documents) < mislabelled
    labels[wrong] = random.integers(len(topics), size=int(wrong.sum()))
    return Corpus(texts, labels, lengths)
